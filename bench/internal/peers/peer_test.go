package peers

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/benchtest"
	"github.com/onesided/rma/bench/internal/cases"
	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan/plantest"
	"github.com/onesided/rma/bench/internal/runner"
)

func TestALibraryIsKnownByItsVersion(t *testing.T) {
	for _, test := range []struct{ output, name, version string }{
		{benchtest.Recorded(t, "openmpi_version.txt"), "openmpi", "4.1.4"},
		{"mpirun (Open MPI) 5.0.7\n", "openmpi", "5.0.7"},
		{benchtest.Recorded(t, "mpich_version.txt"), "mpich", "4.0.2"},
		{"Intel(R) MPI Library for Linux* OS, Version 2021.12", "", ""},
		{"", "", ""},
	} {
		name, version := identify(test.output)
		assert.Equal(t, test.name, name)
		assert.Equal(t, test.version, version)
	}
}

func TestAPeerIsStartedAsItsUsersDo(t *testing.T) {
	o := &runner.Options{Repeat: 3, Timeout: 1500 * time.Millisecond}
	open := &Peer{Name: "openmpi", Runner: "mpirun.openmpi", Programs: map[string]string{"mpi_rma": "rma", "mpi_job": "job"}}
	program, args := open.arguments(plantest.Job(t, "put_bw:8,64"), o)
	assert.Equal(t, []string{"mpirun.openmpi", "--bind-to", "none", "-n", "1", "rma", "-repeat", "3", "-limit", "2", "-size", "8,64", "put_bw"}, open.Command(device.Shm, program, 1, args...))
	assert.Contains(t, open.Command(device.Local, program, 1<<20), "--oversubscribe")

	mpich := &Peer{Name: "mpich", Runner: "mpirun.mpich", Programs: open.Programs}
	program, args = mpich.arguments(plantest.Job(t, "fence_scale:64"), o)
	assert.Equal(t, []string{"mpirun.mpich", "-n", "64", "job", "-repeat", "3", "-limit", "2", "fence_scale"}, mpich.Command(device.Shm, program, 64, args...))
	assert.NotContains(t, mpich.Environment(device.Shm), "UCX_TLS=tcp,self")
	program, args = mpich.arguments(plantest.Job(t, "cas_lat"), o)
	assert.Equal(t, "mpi_rma", program)
	assert.Equal(t, []string{"-repeat", "3", "-limit", "2", "cas_lat"}, args, "its size is fixed")
}

func TestAPeerIsStartedOverTCP(t *testing.T) {
	open := &Peer{Name: "openmpi", Runner: "mpirun.openmpi", Programs: map[string]string{"mpi_rma": "rma"}}
	assert.Equal(t, strings.Fields("mpirun.openmpi --bind-to none --mca pml ob1 --mca btl self,tcp --mca osc pt2pt -n 1 rma fop_lat"), open.Command(device.TCP, "mpi_rma", 1, "fop_lat"))
	assert.NotContains(t, open.Environment(device.TCP), "UCX_TLS=tcp,self")
	assert.Equal(t, " over TCP", open.Over(device.TCP))
	assert.Empty(t, open.Over(device.Shm))

	mpich := &Peer{Name: "mpich", Runner: "mpirun.mpich", Programs: open.Programs}
	assert.Equal(t, strings.Fields("mpirun.mpich -n 2 rma fop_lat"), mpich.Command(device.TCP, "mpi_rma", 2, "fop_lat"))
	assert.Subset(t, mpich.Environment(device.TCP), []string{"MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"})
}

func TestEveryCaseIsInTheCPrograms(t *testing.T) {
	for _, c := range cases.All() {
		if c.Ours {
			continue
		}
		file := "programs/mpi_rma.c"
		if c.Kind == cases.Alone {
			file = "programs/mpi_job.c"
		}
		text, err := sources.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"`+c.Name+`"`)
	}
}

func TestMissingPeersComeWithTheirPackages(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	found, missing := Find(t.Context())
	assert.Empty(t, found)
	assert.Equal(t, []string{
		"Open MPI is not installed; on Debian: apt-get install openmpi-bin libopenmpi-dev gcc",
		"MPICH is not installed; on Debian: apt-get install mpich libmpich-dev gcc",
	}, missing)
	assert.Equal(t, 1, seconds(time.Millisecond))
}
