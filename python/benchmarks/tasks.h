/* The tasks of explorer.c: small environments where a reward is rare. Each gives the state as numbers (what a bonus sees), as
 * features of a linear agent (indices into its weights), and as a cell (what is counted exactly). */
#ifndef TASKS_H
#define TASKS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

enum { DEEP_SEA, MOUNTAIN_CAR, POINT_MAZE, DOOR_KEY, DOOR_KEY_RANDOM, TASKS };
enum { MAX_DIM = 12, MAX_FEATURES = 8, WEIGHTS = 1 << 16, CELLS = 1 << 16 };

typedef struct task {
    int kind, actions, dim, limit, features, cells;
    /* Where the agent is. */
    int t, row, column, direction, key, door;
    double x, y;
    uint64_t random, layouts;
    unsigned char flipped[400];
    /* A grid of DoorKey: 0 free, 1 wall; where key, door and goal are. */
    int wall, door_row, key_row, key_column, goal_row, goal_column;
} task;

static uint64_t bits(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state) { return (double)(bits(state) >> 11) / 9007199254740992.0; }
static int below(uint64_t *state, int n) { return (int)(uniform(state) * n); }

enum { SEA = 20, GRID = 6, CAR_STEPS = 200, MAZE_STEPS = 400, KEY_STEPS = 640 };

/* Walls of the point maze: a corridor that folds three times. */
static const double WALLS[3][4] = {{0.25, 0.0, 0.25, 0.8}, {0.5, 0.2, 0.5, 1.0}, {0.75, 0.0, 0.75, 0.8}};

static void key_layout(task *e) {
    uint64_t *random = &e->layouts;
    e->wall = 2 + below(random, 2);
    e->door_row = below(random, GRID);
    e->key_row = below(random, GRID);
    e->key_column = below(random, e->wall);
    e->goal_row = GRID - 1;
    e->goal_column = GRID - 1;
}

static void reset(task *e) {
    e->t = 0;
    e->row = e->column = e->key = e->door = e->direction = 0;
    if (e->kind == MOUNTAIN_CAR) {
        e->x = -0.6 + 0.2 * uniform(&e->random);
        e->y = 0;
    } else if (e->kind == POINT_MAZE) {
        e->x = 0.1;
        e->y = 0.1;
    } else if (e->kind == DOOR_KEY_RANDOM) {
        key_layout(e);
        do {
            e->row = below(&e->layouts, GRID);
            e->column = below(&e->layouts, e->wall);
        } while (e->row == e->key_row && e->column == e->key_column);
        e->direction = below(&e->layouts, 4);
    }
}

static void make(task *e, int kind, uint64_t seed) {
    static const int ACTIONS[] = {2, 3, 4, 5, 5}, DIMS[] = {2, 2, 2, 6, 8};
    static const int LIMITS[] = {SEA, CAR_STEPS, MAZE_STEPS, KEY_STEPS, KEY_STEPS}, FEATURES[] = {1, 8, 8, 1, 5};
    int i;
    memset(e, 0, sizeof *e);
    e->kind = kind;
    e->actions = ACTIONS[kind];
    e->dim = DIMS[kind];
    e->limit = LIMITS[kind];
    e->features = FEATURES[kind];
    e->random = seed * 7919 + 17;
    e->layouts = seed * 104729 + 5;
    for (i = 0; i < SEA * SEA; i++) e->flipped[i] = (unsigned char)(bits(&e->random) & 1);
    if (kind == DOOR_KEY) {
        e->wall = 3, e->door_row = 4, e->key_row = 5, e->key_column = 0;
        e->goal_row = e->goal_column = GRID - 1;
    }
    reset(e);
}

static int crosses(double x0, double x1, double y) {
    int i;
    for (i = 0; i < 3; i++) {
        if ((x0 < WALLS[i][0]) != (x1 < WALLS[i][0]) && y >= WALLS[i][1] && y <= WALLS[i][3]) return 1;
    }
    return 0;
}

/* What stands in the cell: 0 free, 1 wall, 2 key, 3 closed door, 4 goal. */
static int cell_of(const task *e, int row, int column) {
    if (row < 0 || column < 0 || row >= GRID || column >= GRID) return 1;
    if (column == e->wall) return row == e->door_row ? (e->door ? 0 : 3) : 1;
    if (!e->key && row == e->key_row && column == e->key_column) return 2;
    return row == e->goal_row && column == e->goal_column ? 4 : 0;
}

static void ahead(const task *e, int *row, int *column) {
    static const int ROWS[] = {0, 1, 0, -1}, COLUMNS[] = {1, 0, -1, 0};
    *row = e->row + ROWS[e->direction];
    *column = e->column + COLUMNS[e->direction];
}

/* One step. Gives the reward; *done: 1 at the goal, 2 at the end of the time, 0 otherwise. */
static double step(task *e, int action, int *done) {
    double reward = 0;
    *done = 0;
    e->t++;
    if (e->kind == DEEP_SEA) {
        const int right = (action ^ e->flipped[e->row * SEA + e->column]) & 1;
        if (right) reward -= 0.01 / SEA;
        if (right && e->column == SEA - 1 && e->row == SEA - 1) reward += 1, *done = 1;
        e->column += right ? 1 : -1;
        if (e->column < 0) e->column = 0;
        if (e->column >= SEA) e->column = SEA - 1;
        e->row++;
        if (e->row >= SEA) {
            e->row = SEA - 1;
            if (!*done) *done = 2;
        }
        return reward;
    }
    if (e->kind == MOUNTAIN_CAR) {
        e->y += 0.001 * (action - 1) - 0.0025 * cos(3 * e->x);
        e->y = e->y > 0.07 ? 0.07 : e->y < -0.07 ? -0.07 : e->y;
        e->x += e->y;
        if (e->x < -1.2) e->x = -1.2, e->y = 0;
        if (e->x >= 0.5) *done = 1, reward = 1;
    } else if (e->kind == POINT_MAZE) {
        static const double DX[] = {0.05, 0, -0.05, 0}, DY[] = {0, 0.05, 0, -0.05};
        double x = e->x + DX[action] + 0.01 * (uniform(&e->random) - 0.5);
        double y = e->y + DY[action] + 0.01 * (uniform(&e->random) - 0.5);
        x = x < 0 ? 0 : x > 1 ? 1 : x;
        y = y < 0 ? 0 : y > 1 ? 1 : y;
        if (!crosses(e->x, x, e->y)) e->x = x;
        if (!crosses(e->x, e->x, y)) e->y = y;
        if (e->x > 0.85 && e->y < 0.15) *done = 1, reward = 1;
    } else {
        int row, column, what;
        ahead(e, &row, &column);
        what = cell_of(e, row, column);
        if (action == 0) e->direction = (e->direction + 3) % 4;
        if (action == 1) e->direction = (e->direction + 1) % 4;
        if (action == 2 && (what == 0 || what == 4)) e->row = row, e->column = column;
        if (action == 2 && what == 4) *done = 1, reward = 1 - 0.9 * e->t / KEY_STEPS;
        if (action == 3 && what == 2) e->key = 1;
        if (action == 4 && what == 3 && e->key) e->door = 1;
    }
    if (!*done && e->t >= e->limit) *done = 2;
    return reward;
}

/* What a bonus sees: numbers of about 0 to 1. */
static void observe(const task *e, float *out) {
    static const float COS[] = {1, 0, -1, 0}, SIN[] = {0, 1, 0, -1};
    switch (e->kind) {
        case DEEP_SEA: out[0] = (float)e->row / SEA, out[1] = (float)e->column / SEA; break;
        case MOUNTAIN_CAR: out[0] = (float)((e->x + 1.2) / 1.7), out[1] = (float)((e->y + 0.07) / 0.14); break;
        case POINT_MAZE: out[0] = (float)e->x, out[1] = (float)e->y; break;
        case DOOR_KEY:
            out[0] = (float)e->row / GRID, out[1] = (float)e->column / GRID;
            out[2] = 0.25f * COS[e->direction], out[3] = 0.25f * SIN[e->direction];
            out[4] = (float)e->key, out[5] = (float)e->door;
            break;
        default: {
            const int to_row = e->key ? (e->door ? e->goal_row : e->door_row) : e->key_row;
            const int to_column = e->key ? (e->door ? e->goal_column : e->wall) : e->key_column;
            int row, column;
            ahead(e, &row, &column);
            out[0] = (float)e->row / GRID, out[1] = (float)e->column / GRID;
            out[2] = 0.25f * COS[e->direction], out[3] = 0.25f * SIN[e->direction];
            out[4] = (float)e->key, out[5] = (float)e->door;
            out[6] = (float)(to_row - e->row) / GRID, out[7] = (float)(to_column - e->column) / GRID;
        }
    }
}

/* The cell of the state, for exact counts and coverage. */
static int cell(const task *e) {
    switch (e->kind) {
        case DEEP_SEA: return e->row * SEA + e->column;
        case MOUNTAIN_CAR: return (int)((e->x + 1.2) / 1.7 * 19.99) * 20 + (int)((e->y + 0.07) / 0.14 * 19.99);
        case POINT_MAZE: return (int)(e->x * 19.99) * 20 + (int)(e->y * 19.99);
        default: {
            const int place = ((e->row * GRID + e->column) * 4 + e->direction) * 4 + e->key * 2 + e->door;
            if (e->kind == DOOR_KEY) return place;
            return (int)(((unsigned)place * 6 + (unsigned)e->door_row) * 37 + (unsigned)(e->key_row * GRID + e->key_column)) % CELLS;
        }
    }
}

/* The agent's features: indices of weights. A table, or eight shifted grids (tile coding). */
static void features(const task *e, int *out) {
    int i;
    if (e->kind == MOUNTAIN_CAR || e->kind == POINT_MAZE) {
        float o[2];
        observe(e, o);
        for (i = 0; i < 8; i++) {
            const int a = (int)(o[0] * 10 + (float)i / 8), b = (int)(o[1] * 10 + (float)(3 * i % 8) / 8);
            out[i] = (i * 12 + a) * 12 + b;
        }
    } else if (e->kind == DOOR_KEY_RANDOM) {
        const int state = e->direction * 4 + e->key * 2 + e->door;
        int row, column;
        ahead(e, &row, &column);
        out[0] = state * 5 + cell_of(e, row, column);
        out[1] = 200 + ((e->key_row - e->row + 6) * 13 + e->key_column - e->column + 6) * 16 + state;
        out[2] = 3000 + ((e->door_row - e->row + 6) * 13 + e->wall - e->column + 6) * 16 + state;
        out[3] = 6000 + ((e->goal_row - e->row + 6) * 13 + e->goal_column - e->column + 6) * 16 + state;
        out[4] = 9000 + ((e->row * GRID + e->column) * 4 + e->wall) * 16 + state;
    } else {
        out[0] = cell(e);
    }
}

#endif
