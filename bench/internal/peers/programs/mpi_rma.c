/* One-sided micro-benchmarks over MPI-3 RMA, and some of messages and collectives, two ranks: the peers' side of the comparison.
 *
 *   mpicc -O3 -march=native -o mpi_rma mpi_rma.c
 *   mpirun -n 2 ./mpi_rma [-repeat R] [-size BYTES,BYTES,...] [-limit SECONDS] [case ...]     (no case: all)
 *
 * Prints one line a cell:  case size value unit
 *   *_lat      microseconds for one operation with its synchronization (see each function)
 *   *_bw       MB/s (10^6), 64 operations in flight before each flush, or 64 messages before an answer
 *   *_rate     million operations a second
 * Windows come from MPI_Win_allocate, the flavour that is fastest in every peer.
 * Each cell is the best of R timed loops, each after a warm-up of a tenth of the loop.
 * -size replaces the sizes of the cases that have several. After -limit seconds every
 * rank ends itself, whatever becomes of its launcher.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WINDOW_BYTES (64L << 20)
#define INFLIGHT 64
#define MAX_SIZES 64

static int rank, repeats = 5;
static MPI_Win win;
static char *mem, *buf, *result;

static int iterations(long bytes) { return bytes <= 8192 ? 20000 : bytes <= 262144 ? 2000 : 200; }

typedef void (*step_fn)(long bytes, int i);

static double best(step_fn origin, step_fn target, long bytes, int iters) {
    double best_s = 1e30;
    for (int r = 0; r < repeats; r++) {
        step_fn f = rank == 0 ? origin : target;
        for (int i = 0; f && i < iters / 10 + 1; i++) f(bytes, i);
        MPI_Barrier(MPI_COMM_WORLD);
        double t = MPI_Wtime();
        for (int i = 0; f && i < iters; i++) f(bytes, i);
        t = MPI_Wtime() - t;
        if (t < best_s) best_s = t;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return best_s / iters;
}

/* ---- passive target: lock_all is held by main around these ---- */
static void put_flush(long n, int i) { MPI_Put(buf, n, MPI_BYTE, 1, 0, n, MPI_BYTE, win); MPI_Win_flush(1, win); }
static void get_flush(long n, int i) { MPI_Get(buf, n, MPI_BYTE, 1, 0, n, MPI_BYTE, win); MPI_Win_flush(1, win); }
static void acc_flush(long n, int i) { MPI_Accumulate(buf, n / 8, MPI_DOUBLE, 1, 0, n / 8, MPI_DOUBLE, MPI_SUM, win); MPI_Win_flush(1, win); }
static void fop_flush(long n, int i) { MPI_Fetch_and_op(buf, result, MPI_INT64_T, 1, 0, MPI_SUM, win); MPI_Win_flush(1, win); }
static void cas_flush(long n, int i) { MPI_Compare_and_swap(buf, buf + 8, result, MPI_INT64_T, 1, 0, win); MPI_Win_flush(1, win); }
static void put_many(long n, int i) {
    for (int j = 0; j < INFLIGHT; j++) MPI_Put(buf + (j * n) % (16L << 20), n, MPI_BYTE, 1, (j * n) % (32L << 20), n, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}
static void get_many(long n, int i) {
    for (int j = 0; j < INFLIGHT; j++) MPI_Get(buf + (j * n) % (16L << 20), n, MPI_BYTE, 1, (j * n) % (32L << 20), n, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}
static uint64_t seed = 88172645463325252ULL;
static long spot(void) { seed ^= seed << 13; seed ^= seed >> 7; seed ^= seed << 17; return (long)(seed % (WINDOW_BYTES / 8)) * 8; }
static void update_many(long n, int i) { /* GUPS-like: n random 8-byte xor updates, one flush */
    for (long j = 0; j < n; j++) MPI_Accumulate(buf, 1, MPI_UINT64_T, 1, spot(), 1, MPI_UINT64_T, MPI_BXOR, win);
    MPI_Win_flush(1, win);
}
static void scatter_many(long n, int i) { /* n 8-byte puts at random places, one flush */
    for (long j = 0; j < n; j++) MPI_Put(buf + (j % 1024) * 8, 8, MPI_BYTE, 1, spot(), 8, MPI_BYTE, win);
    MPI_Win_flush(1, win);
}

/* ---- a target that computes: it calls nothing of MPI for a second, then the barrier ----
 * The origin, after a head start of 10 ms, puts for half a second, each put timed. The
 * value is the median of a loop. Where the target has to call MPI for a put to end, that
 * is the time until it enters the barrier. */
#define MOST_SAMPLES 50000
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static volatile uint64_t computed;
static void compute(double seconds) {
    uint64_t x = 88172645463325252ULL;
    for (double end = now() + seconds; now() < end;)
        for (int i = 0; i < 1 << 16; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; }
    computed = x;
}
static int ascending(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }
static double put_while_computing(void) {
    static double took[MOST_SAMPLES];
    double best_s = 1e30;
    for (int r = 0; r < repeats; r++) {
        for (int i = 0; rank == 0 && i < 100; i++) put_flush(8, i);
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 1) compute(1);
        if (rank == 0) {
            compute(0.01);
            int n = 0;
            for (double end = now() + 0.5; n == 0 || (n < MOST_SAMPLES && now() < end); n++) {
                double t = now();
                put_flush(8, n);
                took[n] = now() - t;
            }
            qsort(took, n, sizeof *took, ascending);
            double median = (took[(n - 1) / 2] + took[n / 2]) / 2;
            if (median < best_s) best_s = median;
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return best_s;
}

/* ---- active target ---- */
static void fence_put_0(long n, int i) { MPI_Put(buf, n, MPI_BYTE, 1, 0, n, MPI_BYTE, win); MPI_Win_fence(0, win); }
static void fence_put_1(long n, int i) { MPI_Win_fence(0, win); }
static void fence_many_0(long n, int i) {
    for (long j = 0; j < n; j++) MPI_Put(buf + (j % 1024) * 8, 8, MPI_BYTE, 1, spot(), 8, MPI_BYTE, win);
    MPI_Win_fence(0, win);
}

static MPI_Group peer;
static void as_origin(long n, int ngets, int nputs) {
    MPI_Win_start(peer, 0, win);
    for (int j = 0; j < nputs; j++) MPI_Put(buf + j * n, n, MPI_BYTE, 1 - rank, j * n, n, MPI_BYTE, win);
    for (int j = 0; j < ngets; j++) MPI_Get(buf + (32L << 20) + j * n, n, MPI_BYTE, 1 - rank, (32L << 20) + j * n, n, MPI_BYTE, win);
    MPI_Win_complete(win);
}
static void as_target(void) { MPI_Win_post(peer, 0, win); MPI_Win_wait(win); }
static void pingpong_put_0(long n, int i) { as_origin(n, 0, 1); as_target(); }
static void pingpong_put_1(long n, int i) { as_target(); as_origin(n, 0, 1); }
static void pingpong_get_0(long n, int i) { as_origin(n, 1, 0); as_target(); }
static void pingpong_get_1(long n, int i) { as_target(); as_origin(n, 1, 0); }
static void pingpong_both_0(long n, int i) { as_origin(n, 1, 1); as_target(); }
static void pingpong_both_1(long n, int i) { as_target(); as_origin(n, 1, 1); }
static void pattern16_0(long n, int i) { as_origin(n, 16, 16); }
static void pattern16_1(long n, int i) { as_target(); }

/* ---- messages, without a window ---- */
static char *into; /* where messages and sums go: behind what is sent */
static void msg_0(long n, int i) { MPI_Send(buf, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD); MPI_Recv(into, n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void msg_1(long n, int i) { MPI_Recv(into, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); MPI_Send(buf, n, MPI_BYTE, 0, 0, MPI_COMM_WORLD); }
static void msgs_0(long n, int i) {
    MPI_Request sent[INFLIGHT];
    for (int j = 0; j < INFLIGHT; j++) MPI_Isend(buf + (j * n) % (16L << 20), n, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &sent[j]);
    MPI_Waitall(INFLIGHT, sent, MPI_STATUSES_IGNORE);
    MPI_Recv(into, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void msgs_1(long n, int i) {
    MPI_Request received[INFLIGHT];
    for (int j = 0; j < INFLIGHT; j++) MPI_Irecv(into + (j * n) % (16L << 20), n, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &received[j]);
    MPI_Waitall(INFLIGHT, received, MPI_STATUSES_IGNORE);
    MPI_Send(buf, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

/* ---- collectives, likewise ---- */
static void allreduce(long n, int i) { MPI_Allreduce(buf, into, n / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void bcast(long n, int i) { /* the two are the root in turn */
    static int root;
    MPI_Bcast(buf, n, MPI_BYTE, root, MPI_COMM_WORLD);
    root = 1 - root;
}

/* ---- the command line ---- */
static int ncases; static char **cases;
static long sizes[MAX_SIZES] = {8, 1024, 8192, 65536, 1048576};
static int nsizes = 5, sizes_given;

static int wanted(const char *name) {
    for (int i = 0; i < ncases; i++) if (!strcmp(cases[i], name)) return 1;
    return ncases == 0;
}
static int parse(int argc, char **argv) {
    int i = 1;
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (!strcmp(argv[i], "-repeat")) repeats = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "-limit")) alarm(atoi(argv[i + 1]));
        else if (!strcmp(argv[i], "-size")) {
            nsizes = 0; sizes_given = 1;
            for (char *s = strtok(argv[i + 1], ","); s && nsizes < MAX_SIZES; s = strtok(NULL, ",")) sizes[nsizes++] = atol(s);
        } else return 0;
    }
    ncases = argc - i; cases = argv + i;
    return 1;
}
static void report(const char *name, long size, double v, const char *unit) {
    if (rank == 0) { printf("%-14s %9ld %14.4f %s\n", name, size, v, unit); fflush(stdout); }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    if (!parse(argc, argv)) { fprintf(stderr, "mpi_rma: unknown flag\n"); MPI_Abort(MPI_COMM_WORLD, 2); }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(WINDOW_BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
    memset(mem, 0, WINDOW_BYTES);
    if (posix_memalign((void **)&buf, 4096, WINDOW_BYTES)) return 1;
    memset(buf, 0, WINDOW_BYTES);
    result = calloc(1, 64);
    MPI_Group all; MPI_Comm_group(MPI_COMM_WORLD, &all);
    int other = 1 - rank; MPI_Group_incl(all, 1, &other, &peer);

    struct { const char *name; step_fn f; long max; } passive[] = {
        {"put_flush_lat", put_flush, 1 << 20}, {"get_flush_lat", get_flush, 1 << 20}, {"acc_flush_lat", acc_flush, 65536}};
    struct { const char *name; step_fn f; } single[] = {{"fop_lat", fop_flush}, {"cas_lat", cas_flush}};
    MPI_Win_lock_all(0, win);
    for (int c = 0; c < 3; c++)
        for (int s = 0; wanted(passive[c].name) && s < nsizes && (sizes_given || sizes[s] <= passive[c].max); s++)
            report(passive[c].name, sizes[s], best(passive[c].f, NULL, sizes[s], iterations(sizes[s])) * 1e6, "us");
    for (int c = 0; c < 2; c++)
        if (wanted(single[c].name)) report(single[c].name, 8, best(single[c].f, NULL, 8, iterations(8)) * 1e6, "us");
    for (int s = 0; s < nsizes; s++) {
        long n = sizes[s];
        int iters = n <= 8192 ? 1000 : n <= 65536 ? 200 : 20;
        if (wanted("put_bw")) report("put_bw", n, n * INFLIGHT / best(put_many, NULL, n, iters) / 1e6, "MB/s");
        if (wanted("get_bw")) report("get_bw", n, n * INFLIGHT / best(get_many, NULL, n, iters) / 1e6, "MB/s");
    }
    if (wanted("scatter_rate")) report("scatter_rate", 1000, 1000 / best(scatter_many, NULL, 1000, 200) / 1e6, "Mop/s");
    if (wanted("update_rate")) report("update_rate", 1000, 1000 / best(update_many, NULL, 1000, 200) / 1e6, "Mop/s");
    if (wanted("passive_put_lat")) report("passive_put_lat", 8, put_while_computing() * 1e6, "us");
    MPI_Win_unlock_all(win);

    MPI_Win_fence(0, win);
    for (int s = 0; wanted("fence_put_lat") && s < nsizes; s++)
        report("fence_put_lat", sizes[s], best(fence_put_0, fence_put_1, sizes[s], iterations(sizes[s])) * 1e6, "us");
    if (wanted("fence_rate")) report("fence_rate", 1000, 1000 / best(fence_many_0, fence_put_1, 1000, 200) / 1e6, "Mop/s");
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);

    struct { const char *name; step_fn a, b; } pscw[] = {
        {"pscw_put_lat", pingpong_put_0, pingpong_put_1}, {"pscw_get_lat", pingpong_get_0, pingpong_get_1}, {"pscw_both_lat", pingpong_both_0, pingpong_both_1}};
    for (int c = 0; c < 3; c++)
        for (int s = 0; wanted(pscw[c].name) && s < nsizes; s++)
            report(pscw[c].name, sizes[s], best(pscw[c].a, pscw[c].b, sizes[s], iterations(sizes[s]) / 2) / 2 * 1e6, "us");
    for (int s = 0; wanted("pattern16_bw") && s < nsizes; s++)
        report("pattern16_bw", sizes[s], 32.0 * sizes[s] / best(pattern16_0, pattern16_1, sizes[s], sizes[s] <= 8192 ? 1000 : 100) / 1e6, "MB/s");
    MPI_Win_free(&win);

    into = buf + (32L << 20);
    for (int s = 0; wanted("msg_lat") && s < nsizes; s++)
        report("msg_lat", sizes[s], best(msg_0, msg_1, sizes[s], iterations(sizes[s]) / 2) / 2 * 1e6, "us");
    for (int s = 0; wanted("msg_bw") && s < nsizes; s++) {
        long n = sizes[s];
        report("msg_bw", n, n * INFLIGHT / best(msgs_0, msgs_1, n, n <= 8192 ? 1000 : n <= 65536 ? 200 : 20) / 1e6, "MB/s");
    }
    for (int s = 0; s < nsizes; s++) {
        long n = sizes[s];
        if (n == 8192 && !sizes_given) continue;
        if (wanted("allreduce_lat")) report("allreduce_lat", n, best(allreduce, allreduce, n, iterations(n)) * 1e6, "us");
        if (wanted("bcast_lat")) report("bcast_lat", n, best(bcast, bcast, n, iterations(n)) * 1e6, "us");
    }
    MPI_Finalize();
    return 0;
}
