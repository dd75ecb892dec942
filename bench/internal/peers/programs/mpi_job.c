/* What synchronization costs a whole job, over MPI-3 RMA, any number of ranks.
 *
 *   mpicc -O3 -march=native -o mpi_job mpi_job.c
 *   mpirun -n N ./mpi_job [-repeat R] [-limit SECONDS] [case ...]      (no case: all)
 *
 * Prints one line a cell:  case ranks value unit
 *   fence_scale   us for one fence of all ranks: best of R loops of about a tenth of a second
 *   barrier_lat, allreduce_scale, bcast_scale   the same for one barrier, a sum of one double that
 *                 every rank gets, a broadcast of 8 bytes
 *   create_time   us to create a window of 1 MiB a rank, until every rank has it: best of R
 * (no further loop is begun once two seconds are spent)
 *   idle_cpu      percent of a core that a rank uses while it waits in a fence for one
 *                 second: the most that any rank uses
 * After -limit seconds every rank ends itself, whatever becomes of its launcher.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size, repeats = 5;
static char *mem;

/* Whether rank 0, and so every rank, has time for one more loop. */
static int more(double since) {
    int yes = MPI_Wtime() - since < 2;
    MPI_Bcast(&yes, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return yes;
}
typedef void (*step_fn)(int i);

static double steps(step_fn f, int iters) {
    MPI_Barrier(MPI_COMM_WORLD);
    double t = MPI_Wtime();
    for (int i = 0; i < iters; i++) f(i);
    return MPI_Wtime() - t;
}
static double scale(step_fn f) {
    steps(f, 3);
    double least = steps(f, 5) / 5;
    int iters = least * 20000 < 0.1 ? 20000 : least * 5 > 0.1 ? 5 : (int)(0.1 / least);
    MPI_Bcast(&iters, 1, MPI_INT, 0, MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int r = 0; r < repeats && (r == 0 || more(begin)); r++) {
        double t = steps(f, iters) / iters;
        if (r == 0 || t < least) least = t;
    }
    return least * 1e6;
}

static MPI_Win win;
static void fence(int i) { MPI_Win_fence(0, win); }
static void barrier(int i) { MPI_Barrier(MPI_COMM_WORLD); }
static void allreduce(int i) {
    double in = 0, out;
    MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static int root, broadcasts;
static void bcast(int i) { /* each rank in turn is the root, from ranks at all distances, of which none can begin before it has the last */
    char buf[8] = {0};
    MPI_Bcast(buf, sizeof buf, MPI_BYTE, root, MPI_COMM_WORLD);
    root = (root + 1 + broadcasts++ % (size - 1)) % size;
}

static double fence_scale(void) {
    MPI_Win_allocate(1024, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
    double least = scale(fence);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    return least;
}
static double barrier_lat(void) { return scale(barrier); }
static double allreduce_scale(void) { return scale(allreduce); }
static double bcast_scale(void) { return scale(bcast); }
static double create_time(void) {
    double least = 1e30, begin = MPI_Wtime();
    for (int r = 0; r < repeats && (r == 0 || more(begin)); r++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double t = MPI_Wtime();
        MPI_Win_allocate(1 << 20, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
        MPI_Barrier(MPI_COMM_WORLD);
        t = MPI_Wtime() - t;
        if (t < least) least = t;
        MPI_Win_free(&win);
    }
    return least * 1e6;
}
static double used(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}
static double idle_cpu(void) {
    MPI_Win_allocate(1024, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &mem, &win);
    steps(fence, 1);
    double t = MPI_Wtime(), cpu = used(), share = 0, most = 0;
    if (rank == 0) sleep(1);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    if (rank != 0) share = (used() - cpu) / (MPI_Wtime() - t) * 100;
    MPI_Reduce(&share, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Win_free(&win);
    return most;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int first = 1;
    for (; first + 1 < argc && argv[first][0] == '-'; first += 2) {
        if (!strcmp(argv[first], "-repeat")) repeats = atoi(argv[first + 1]);
        else if (!strcmp(argv[first], "-limit")) alarm(atoi(argv[first + 1]));
        else { fprintf(stderr, "mpi_job: unknown flag\n"); MPI_Abort(MPI_COMM_WORLD, 2); }
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    struct { const char *name; double (*f)(void); const char *unit; } cases[] = {
        {"barrier_lat", barrier_lat, "us"}, {"allreduce_scale", allreduce_scale, "us"}, {"bcast_scale", bcast_scale, "us"},
        {"fence_scale", fence_scale, "us"}, {"create_time", create_time, "us"}, {"idle_cpu", idle_cpu, "%"}};
    for (int c = 0; c < 6; c++) {
        int wanted = first == argc;
        for (int i = first; i < argc; i++) wanted |= !strcmp(argv[i], cases[c].name);
        if (!wanted) continue;
        double v = cases[c].f();
        if (rank == 0) { printf("%-14s %9d %14.4f %s\n", cases[c].name, size, v, cases[c].unit); fflush(stdout); }
    }
    MPI_Finalize();
    return 0;
}
