/* An agent in a maze, with and without a memory of where it has been.
 *
 *     ./explorer [SEED]              steps to the goal, and maps of the visits
 *     ./explorer [SEED] --ppm NAME   also writes NAME-without.ppm and NAME-with.ppm
 *
 * Tabular Q-learning, epsilon-greedy. The only reward is 1 at the goal, far from the start. Without a bonus the agent walks at
 * random near the start. With dab_memory each step gets a bonus that fades as a place becomes known, centred by dab_exploration.
 * The agent sees its position as two numbers: nobody counts cells but the drawing. */
#include <dab_memory.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 17, CODES = 256, EPISODE = 300, STEPS = 200000 };

static char maze[SIDE][SIDE + 1];

static uint32_t bits(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static double uniform(uint32_t *state) { return (double)bits(state) / 16777216.0; }

/* Carves a maze by a walk that goes back when it is stuck: one way between any two places. */
static void carve(uint32_t seed) {
    static const int DR[] = {-2, 0, 2, 0}, DC[] = {0, 2, 0, -2};
    int stack[SIDE * SIDE], top = 0, r, c, i;
    for (r = 0; r < SIDE; r++) {
        memset(maze[r], '#', SIDE);
        maze[r][SIDE] = 0;
    }
    stack[top++] = 1 * SIDE + 1;
    maze[1][1] = ' ';
    while (top > 0) {
        int ways[4], n = 0;
        r = stack[top - 1] / SIDE, c = stack[top - 1] % SIDE;
        for (i = 0; i < 4; i++) {
            const int nr = r + DR[i], nc = c + DC[i];
            if (nr > 0 && nc > 0 && nr < SIDE - 1 && nc < SIDE - 1 && maze[nr][nc] == '#') ways[n++] = i;
        }
        if (n == 0) {
            top--;
            continue;
        }
        i = ways[bits(&seed) % (uint32_t)n];
        maze[r + DR[i] / 2][c + DC[i] / 2] = ' ';
        maze[r + DR[i]][c + DC[i]] = ' ';
        stack[top++] = (r + DR[i]) * SIDE + c + DC[i];
    }
}

typedef struct report {
    int first, reached;            /* step of the first success, or 0; successes in all */
    int visits[SIDE][SIDE];        /* until then */
} report;

/* Learns for STEPS steps. 0 if the library refused something. */
static int learn(uint32_t seed, int with_memory, report *out) {
    static uint64_t storage[DAB_MEMORY_BYTES(CODES, 2) / 8];
    static double q[SIDE][SIDE][4];
    static const int DR[] = {-1, 0, 1, 0}, DC[] = {0, 1, 0, -1};
    dab_memory_config config = {.size = sizeof config, .codes = CODES, .dim = 2, .std = 0.5f};
    dab_exploration_config scale = {.size = sizeof scale, .start = 0.1f, .clip = 5, .centered = 1, .warmup = 2};
    dab_memory *memory;
    dab_exploration exploration;
    int r = 1, c = 1, t = 0, step;
    memset(q, 0, sizeof q);
    memset(out, 0, sizeof *out);
    if (dab_memory_init(storage, sizeof storage, &config, &memory) != DAB_OK) return 0;
    if (dab_exploration_init(&exploration, &scale) != DAB_OK) return 0;
    for (step = 1; step <= STEPS; step++) {
        double *here = q[r][c], next = 0, reward = 0;
        int action = (int)(bits(&seed) % 4u), i, nr, nc;
        if (uniform(&seed) >= 0.1) {
            for (i = 0; i < 4; i++) {
                if (here[i] > here[action]) action = i;
            }
        }
        nr = r + DR[action], nc = c + DC[action];
        if (maze[nr][nc] == '#') nr = r, nc = c;
        if (!out->first) out->visits[nr][nc]++;
        if (nr == SIDE - 2 && nc == SIDE - 2) reward = 1;
        if (with_memory) {
            const float place[2] = {(float)nr, (float)nc};
            dab_novelty n = {.size = sizeof n};
            float bonus = 0;
            if (dab_memory_observe(memory, place, NULL, 2, &n) != DAB_OK) return 0;
            if (dab_exploration_update(&exploration, &n.bonus, 1) != DAB_OK) return 0;
            if (dab_exploration_compute(&exploration, &n.bonus, 1, (uint64_t)step, &bonus) != DAB_OK) return 0;
            reward += (double)bonus;
        }
        for (i = 0; i < 4; i++) {
            if (i == 0 || q[nr][nc][i] > next) next = q[nr][nc][i];
        }
        if (nr == SIDE - 2 && nc == SIDE - 2) next = 0;
        here[action] += 0.5 * (reward + 0.99 * next - here[action]);
        r = nr, c = nc;
        if (r == SIDE - 2 && c == SIDE - 2) {
            if (!out->first) out->first = step;
            out->reached++;
            t = EPISODE;
        }
        if (++t >= EPISODE) r = c = 1, t = 0;
    }
    return 1;
}

/* Darker is more often; the goal is G. */
static void draw(const report *found) {
    int r, c;
    for (r = 0; r < SIDE; r++) {
        for (c = 0; c < SIDE; c++) {
            const int n = found->visits[r][c];
            char mark = n == 0 ? ' ' : n < 10 ? '.' : n < 100 ? ':' : n < 1000 ? 'o' : '@';
            if (maze[r][c] == '#') mark = '#';
            if (r == SIDE - 2 && c == SIDE - 2) mark = 'G';
            putchar(mark);
        }
        putchar('\n');
    }
}

/* The same as a picture, eight pixels a cell. */
static int picture(const char *name, const char *which, const report *found) {
    char path[512];
    FILE *file;
    int r, c, i;
    snprintf(path, sizeof path, "%s-%s.ppm", name, which);
    file = fopen(path, "wb");
    if (!file) return 0;
    fprintf(file, "P6 %d %d 255\n", 8 * SIDE, 8 * SIDE);
    for (r = 0; r < 8 * SIDE; r++) {
        for (c = 0; c < 8 * SIDE; c++) {
            const int n = found->visits[r / 8][c / 8];
            const double shade = n == 0 ? 1 : 0.85 - 0.75 * log10((double)n + 1) / 5;
            unsigned char pixel[3];
            for (i = 0; i < 3; i++) pixel[i] = (unsigned char)(255 * (i == 1 || n == 0 ? shade : 0.6 * shade));
            if (maze[r / 8][c / 8] == '#') pixel[0] = pixel[1] = pixel[2] = 40;
            fwrite(pixel, 1, 3, file);
        }
    }
    return fclose(file) == 0;
}

int main(int count, char **arguments) {
    static const char *const NAMES[] = {"without", "with"};
    static report found;
    uint32_t seed = 1;
    const char *name = NULL;
    int i;
    for (i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--ppm") == 0 && i + 1 < count) name = arguments[++i];
        else seed = (uint32_t)strtoul(arguments[i], NULL, 10);
    }
    carve(7);
    for (i = 0; i < 2; i++) {
        if (!learn(seed, i, &found)) {
            fputs("the library refused a call\n", stderr);
            return 1;
        }
        if (found.first) printf("%s the memory: the goal after %d steps, then %d times\n", NAMES[i], found.first, found.reached - 1);
        else printf("%s the memory: no goal in %d steps\n", NAMES[i], STEPS);
        draw(&found);
        if (name && !picture(name, NAMES[i], &found)) {
            perror(name);
            return 1;
        }
    }
    return found.first == 0;
}
