// RandomAccess over MPI-3 RMA: the kernel of ../main.go with MPI_Accumulate, for comparison.
//
//	mpicc -O3 -march=native -o gups gups.c && mpirun -n 2 ./gups [LOG [AHEAD]]
//
// The number of ranks is a power of two here.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define POLY 7u

static uint64_t next(uint64_t a) { return a << 1 ^ ((int64_t)a < 0 ? POLY : 0); }

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product = 0;
	for (; b != 0; a = next(a), b >>= 1)
		if (b & 1)
			product ^= a;
	return product;
}

static uint64_t jump(uint64_t n)
{
	uint64_t power = 1;
	for (int bit = 63; bit >= 0; bit--) {
		power = times(power, power);
		if (n >> bit & 1)
			power = next(power);
	}
	return power;
}

// update makes the updates from first to before last, of which at most so many are ahead.
static void update(MPI_Win window, uint64_t first, uint64_t last, uint64_t words, uint64_t part, uint64_t ahead)
{
	static uint64_t values[1024];
	uint64_t value = jump(first);
	while (first < last) {
		uint64_t n = last - first < ahead ? last - first : ahead;
		for (uint64_t i = 0; i < n; i++) {
			value = values[i] = next(value);
			uint64_t index = value & (words - 1);
			MPI_Accumulate(&values[i], 1, MPI_UINT64_T, (int)(index / part), (MPI_Aint)(index % part), 1, MPI_UINT64_T, MPI_BXOR, window);
		}
		MPI_Win_flush_all(window);
		first += n;
	}
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	int rank, ranks;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	uint64_t words = 1ull << (argc > 1 ? atoi(argv[1]) : 22), ahead = argc > 2 ? strtoull(argv[2], NULL, 10) : 1024;
	if ((ranks & (ranks - 1)) != 0 || words < (uint64_t)ranks || ahead < 1 || ahead > 1024) {
		fprintf(stderr, "gups: ranks must be a power of two, AHEAD 1 to 1024\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	uint64_t part = words / ranks, *table, updates = 4 * words;
	MPI_Info info;
	MPI_Info_create(&info);
	MPI_Info_set(info, "same_disp_unit", "true");
	MPI_Info_set(info, "accumulate_ops", "same_op");
	MPI_Win window;
	MPI_Win_allocate(part * sizeof *table, sizeof *table, info, MPI_COMM_WORLD, &table, &window);
	MPI_Win_lock_all(MPI_MODE_NOCHECK, window);
	for (uint64_t i = 0; i < part; i++)
		table[i] = rank * part + i;
	uint64_t first = updates / ranks * rank, last = first + updates / ranks;
	MPI_Win_sync(window);
	MPI_Barrier(MPI_COMM_WORLD);
	double begun = MPI_Wtime();
	update(window, first, last, words, part, ahead);
	MPI_Barrier(MPI_COMM_WORLD);
	double took = MPI_Wtime() - begun;
	update(window, first, last, words, part, ahead);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(window);
	uint64_t wrong = 0, all = 0;
	for (uint64_t i = 0; i < part; i++)
		wrong += table[i] != rank * part + i;
	MPI_Reduce(&wrong, &all, 1, MPI_UINT64_T, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("%-20s %14.6g GUPS\n", "rate", updates / took * 1e-9);
		printf("%-20s %14llu of %llu words\n", "wrong", (unsigned long long)all, (unsigned long long)words);
	}
	MPI_Win_unlock_all(window);
	MPI_Win_free(&window);
	MPI_Info_free(&info);
	MPI_Finalize();
	return rank == 0 && all > 0;
}
