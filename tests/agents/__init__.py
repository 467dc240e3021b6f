"""The ring of tests with agents written elsewhere, brought from the package registries."""
