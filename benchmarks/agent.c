/* The agent that every client is measured with: speaks just enough ACP, and is never the bottleneck.

   agent [--stamp FILE] MODE ...        MODE says what a prompt makes it do:
     chunks COUNT LINE_BYTES    stream COUNT text updates, each a line of LINE_BYTES, newline included
     ask COUNT                  ask COUNT permissions, one after the other; answer with the median
                                round trip in nanoseconds
     hold                       answer only when cancelled
   agent bystanders COUNT       no agent: COUNT idle processes, each in a session of its own, until stdin ends

   --stamp writes the moment of the first byte that came (CLOCK_MONOTONIC, nanoseconds) to FILE.

   Everything is an argument: some clients trim the environment. Nothing is prepared before a prompt, since
   the start-up of the agent counts in what a run costs. The text of each update differs: a decoder that
   remembers strings must not look cheaper than it is. */

#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { NUMBER_DIGITS = 8, BLOCK_BYTES = 65536 };

static const char HEAD[] =
    "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s-1\",\"update\":"
    "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"";
static const char TAIL[] = "\"}}}}\n";

static char *input;
static size_t input_bytes, input_room;

static void send_all(const char *data, size_t length) {
    while (length) {
        ssize_t written = write(1, data, length);
        if (written <= 0) exit(1);
        data += written;
        length -= (size_t)written;
    }
}

static long long now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Read until there is a whole line; its length with the newline, 0 at the end of the input. */
static size_t next_line(const char *stamp) {
    static int stamped;
    size_t seen = 0;
    for (;;) {
        char *end = input_bytes > seen ? memchr(input + seen, '\n', input_bytes - seen) : NULL;
        if (end) return (size_t)(end - input) + 1;
        seen = input_bytes;
        if (input_room - input_bytes < BLOCK_BYTES) {
            input_room = input_room * 2 + BLOCK_BYTES;
            input = realloc(input, input_room + 1);
            if (!input) exit(1);
        }
        ssize_t got = read(0, input + input_bytes, input_room - input_bytes);
        if (got <= 0) return 0;
        if (stamp && !stamped) {
            FILE *file = fopen(stamp, "w");
            if (file) {
                fprintf(file, "%lld\n", now_ns());
                fclose(file);
            }
        }
        stamped = 1;
        input_bytes += (size_t)got;
    }
}

static void drop_line(size_t length) {
    input_bytes -= length;
    memmove(input, input + length, input_bytes);
}

/* The value after `key` in the line, as it is written there; 0 when the key is not in it. */
static int value_of(const char *line, const char *key, char *value, size_t room) {
    const char *at = strstr(line, key);
    if (!at) return 0;
    at += strlen(key);
    while (*at == ' ' || *at == ':') at++;
    size_t length = *at == '"' ? strcspn(at + 1, "\"") + 2 : strcspn(at, ",} \n");
    if (length >= room) return 0;
    memcpy(value, at, length);
    value[length] = 0;
    return 1;
}

static void answer(const char *id, const char *result) {
    char line[512];
    int length = snprintf(line, sizeof line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", id, result);
    send_all(line, (size_t)length);
}

/* Many lines at a time; before each sending every line of the block gets its own number. */
static void send_chunks(long count, size_t line_bytes) {
    size_t head = sizeof HEAD - 1, tail = sizeof TAIL - 1;
    if (line_bytes < head + NUMBER_DIGITS + tail) line_bytes = head + NUMBER_DIGITS + tail;
    size_t lines = line_bytes < BLOCK_BYTES ? BLOCK_BYTES / line_bytes : 1;
    char *block = malloc(lines * line_bytes);
    if (!block) exit(1);
    unsigned random = 1;
    for (size_t i = 0; i < lines; i++) {
        char *line = block + i * line_bytes;
        memcpy(line, HEAD, head);
        for (size_t at = head + NUMBER_DIGITS; at < line_bytes - tail; at++) {
            random = random * 1664525u + 1013904223u;
            line[at] = "etaoinshrdlucmfwypvbgkjqxz      "[random >> 27];
        }
        memcpy(line + line_bytes - tail, TAIL, tail);
    }
    long number = 0;
    while (number < count) {
        size_t these = (size_t)(count - number) < lines ? (size_t)(count - number) : lines;
        for (size_t i = 0; i < these; i++, number++) {
            char *digit = block + i * line_bytes + head + NUMBER_DIGITS;
            long rest = number;
            for (int place = 0; place < NUMBER_DIGITS; place++, rest /= 10) *--digit = (char)('0' + rest % 10);
        }
        send_all(block, these * line_bytes);
    }
    free(block);
}

static int longer(const void *left, const void *right) {
    long long a = *(const long long *)left, b = *(const long long *)right;
    return (a > b) - (a < b);
}

static void ask(long count) {
    char line[1024];
    long long *times = calloc((size_t)count + 1, sizeof *times);
    if (!times) exit(1);
    for (long number = 0; number < count; number++) {
        int length = snprintf(line, sizeof line,
            "{\"jsonrpc\":\"2.0\",\"id\":%ld,\"method\":\"session/request_permission\",\"params\":"
            "{\"sessionId\":\"s-1\",\"toolCall\":{\"toolCallId\":\"call-%ld\",\"title\":\"Edit a file\","
            "\"kind\":\"edit\",\"status\":\"pending\"},\"options\":[{\"optionId\":\"yes\",\"name\":\"Allow\","
            "\"kind\":\"allow_once\"},{\"optionId\":\"no\",\"name\":\"Reject\",\"kind\":\"reject_once\"}]}}\n",
            number, number);
        long long began = now_ns();
        send_all(line, (size_t)length);
        size_t got = next_line(NULL);
        if (!got) exit(0);
        times[number] = now_ns() - began;
        input[got - 1] = 0;
        if (!strstr(input, "\"yes\"")) exit(3); /* not the answer that was expected */
        drop_line(got);
    }
    qsort(times, (size_t)count, sizeof *times, longer);
    int length = snprintf(line, sizeof line, "%s%lld%s", HEAD, times[count / 2], TAIL);
    send_all(line, (size_t)length);
    free(times);
}

static int bystanders(long count) {
    char byte;
    for (long number = 0; number < count; number++) {
        pid_t child = fork();
        if (child < 0) return 1;
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setsid();
            close(0);
            close(1);
            for (;;) pause();
        }
    }
    send_all("ready\n", 6);
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}

int main(int count, char **words) {
    const char *stamp = NULL;
    int at = 1;
    if (count > 2 && !strcmp(words[1], "--stamp")) stamp = words[2], at = 3;
    const char *mode = at < count ? words[at] : "";
    long number = at + 1 < count ? atol(words[at + 1]) : 0;
    size_t line_bytes = at + 2 < count ? (size_t)atol(words[at + 2]) : 0;
    if (!strcmp(mode, "bystanders")) return bystanders(number);
    char id[64], method[64], held[64] = "";
    size_t length;
    while ((length = next_line(stamp)) > 0) {
        input[length - 1] = 0;
        int has_method = value_of(input, "\"method\"", method, sizeof method);
        int has_id = value_of(input, "\"id\"", id, sizeof id);
        drop_line(length);
        if (!has_method) continue;
        if (!strcmp(method, "\"initialize\"")) {
            answer(id, "{\"protocolVersion\":1,\"agentCapabilities\":{}}");
        } else if (!strcmp(method, "\"session/new\"")) {
            answer(id, "{\"sessionId\":\"s-1\"}");
        } else if (!strcmp(method, "\"session/prompt\"") && !strcmp(mode, "hold")) {
            strcpy(held, id);
        } else if (!strcmp(method, "\"session/prompt\"")) {
            if (!strcmp(mode, "ask")) ask(number);
            else send_chunks(number, line_bytes);
            answer(id, "{\"stopReason\":\"end_turn\"}");
        } else if (!strcmp(method, "\"session/cancel\"") && *held) {
            answer(held, "{\"stopReason\":\"cancelled\"}");
            *held = 0;
        } else if (has_id) {
            answer(id, "{}");
        }
    }
    return 0;
}
