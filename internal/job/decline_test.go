package job_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/jobtest"
	"github.com/onesided/rma/internal/launchtest"
	"github.com/onesided/rma/world"
)

// A rank that cannot join has all hear why, at once: they would wait for it for a minute.
func TestRankThatCannotJoin(t *testing.T) {
	const told = "rank 1 has failed: it cannot join: "
	for _, c := range []struct {
		name, variable string
		// own is what rank 1 says, others what the others do.
		own, others string
	}{
		{"unknown device", "RMA_DEVICE=nonsense", `invalid environment: device "nonsense" (RMA_DEVICE, or WithDevice)`, told + `invalid environment: device "nonsense" (RMA_DEVICE, or WithDevice)`},
		{"malformed address", "RMA_ADDRESS=10.0.0.0/40", `RMA_ADDRESS (or WithAddress): address: not an address of this host: "10.0.0.0/40" is no range`, told + "invalid environment: RMA_ADDRESS"},
		{"address of another", "RMA_ADDRESS=240.0.0.1", `"240.0.0.1" is not here; it has `, told + "invalid environment: RMA_ADDRESS"},
		{"no key file", "RMA_KEY_FILE=/nowhere", "invalid environment: RMA_KEY_FILE: ", told + "invalid environment: RMA_KEY_FILE: "},
		{"trace of nothing", "RMA_TRACE=t.json", `RMA_TRACE (or WithTrace): "t.json": all ranks map each other's memory`, told + "invalid environment: RMA_TRACE"},
		{"another device", "RMA_DEVICE=tcp", `rank 0 has RMA_DEVICE unset (automatic choice), this rank RMA_DEVICE=tcp`, `rank 1 has RMA_DEVICE=tcp, this rank RMA_DEVICE unset (automatic choice)`},
		{"an end before Init", "RMA_JOBTEST_BODY=none", `no body is registered as "none"`, "barrier: rank 1 has ended before it joined"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("RMA_DEVICE", "")
			errs := jobtest.StartWith(t, 3, meet, func(rank int) []string {
				if rank == 1 {
					return []string{c.variable}
				}
				return nil
			}).Wait()
			require.ErrorContains(t, errs[1], c.own)
			for _, rank := range []int{0, 2} {
				require.ErrorContains(t, errs[rank], c.others)
			}
		})
	}
}

func TestSharedMemoryAcrossHosts(t *testing.T) {
	errs := jobtest.StartWith(t, 2, meet, func(rank int) []string {
		return []string{"RMA_DEVICE=shm", "RMA_HOST=" + []string{"", "b"}[rank]}
	}).Wait()
	require.ErrorContains(t, errs[0], `reach rank 1`)
	require.ErrorContains(t, errs[0], `its RMA_HOST is "b", this rank's unset (automatic choice), and RMA_DEVICE allows shared memory only`)
	require.ErrorContains(t, errs[1], `its RMA_HOST is unset (automatic choice), this rank's "b", and RMA_DEVICE allows shared memory only`)
}

// The key of keyFile, and another.
const (
	jobKey   = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	otherKey = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
)

// keyFile has a job's key.
func keyFile(t *testing.T) string {
	t.Helper()
	return fileOf(t, jobKey)
}

// fileOf has a key.
func fileOf(t *testing.T, key string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(path, []byte(key+"\n"), 0o600))
	return path
}

// keyVariable has a rank of meetWithKey give Init the key that it names.
const keyVariable = "WORLD_TEST_KEY"

var meetWithKey = jobtest.RegisterWith("meet with a key", func() ([]world.Option, error) {
	text := os.Getenv(keyVariable)
	if text == "" {
		return nil, nil
	}
	key, err := hex.DecodeString(text)
	return []world.Option{world.WithKey(key)}, err
}, scripted(func(s *script) { s.OK(s.World.Barrier(s.Ctx)) }))

// A rank has the key of WithKey, and that of RMA_KEY_FILE if it has no such option, under a launcher as at a root.
func TestKeyOfTheJob(t *testing.T) {
	for name, keys := range map[string][2]string{
		"the option and a file":         {keyVariable + "=" + jobKey, "RMA_KEY_FILE=" + keyFile(t)},
		"the option beside other files": {keyVariable + "=" + jobKey + " RMA_KEY_FILE=" + fileOf(t, otherKey), keyVariable + "=" + jobKey + " RMA_KEY_FILE=/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("RMA_DEVICE", "tcp")
			environment := func(rank int) []string { return strings.Fields(keys[rank]) }
			t.Run("launcher", func(t *testing.T) { jobtest.StartWith(t, 2, meetWithKey, environment).Succeeds() })
			t.Run("root", func(t *testing.T) {
				root := rootJob(t, launchtest.RootAddress(), 2)
				jobtest.StartWith(t, 2, meetWithKey, func(rank int) []string {
					return append(append(root(rank), "RMA_KEY_FILE="), environment(rank)...)
				}).Succeeds()
			})
		})
	}
	t.Run("another", func(t *testing.T) {
		for _, err := range jobtest.StartWith(t, 2, meetWithKey, func(rank int) []string {
			return []string{"RMA_KEY_FILE=" + fileOf(t, []string{jobKey, otherKey}[rank])}
		}).Wait() {
			require.ErrorContains(t, err, "ranks disagree: ")
			require.Regexp(t, `rank [01] has a key with the hash [0-9a-f]{8}, this rank a key with the hash [0-9a-f]{8}; all ranks must have the same \(RMA_KEY_FILE or WithKey\)`, err.Error())
		}
	})
}

// RMA_KEY_FILE is looked at wherever it is set, also where no rank needs a key.
func TestWrongKeyFile(t *testing.T) {
	environment(t, nil)
	t.Setenv("RMA_KEY_FILE", "/nowhere")
	exchange := func(_ context.Context, mine string) ([]string, error) { return []string{mine}, nil }
	never := func(context.Context, *world.World) error { return fmt.Errorf("began") }
	_, initErr := world.Init(t.Context())
	_, newErr := world.New(t.Context(), 0, 1, exchange)
	for _, err := range []error{initErr, newErr, world.Run(t.Context(), 2, never)} {
		require.ErrorIs(t, err, world.ErrEnvironment)
		require.ErrorContains(t, err, "invalid environment: RMA_KEY_FILE: ")
	}
}

// rootJob is the environment of a job without a manager.
func rootJob(t *testing.T, address string, size int) func(rank int) []string {
	t.Helper()
	key := keyFile(t)
	return func(rank int) []string {
		return []string{"PMI_FD=", "PMI_RANK=", "PMI_SIZE=", "RMA_ROOT=" + address, fmt.Sprint("RMA_RANK=", rank), fmt.Sprint("RMA_SIZE=", size), "RMA_KEY_FILE=" + key}
	}
}

// Ranks that RMA_ROOT brings together hear it from rank 0, all of them.
func TestDisagreementUnderARoot(t *testing.T) {
	for _, c := range []struct {
		name, variable, says string
	}{
		{"device", "RMA_DEVICE=tcp", `rank 1 has RMA_DEVICE=tcp, rank 0 RMA_DEVICE unset (automatic choice)`},
		{"size", "RMA_SIZE=4", "rank 1 has RMA_SIZE=4, rank 0 has 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("RMA_DEVICE", "")
			l, err := net.Listen("tcp", launchtest.RootAddress())
			require.NoError(t, err)
			environment := rootJob(t, l.Addr().String(), 3)
			errs := jobtest.StartWith(t, 3, meet, func(process int) []string {
				switch process {
				case 0:
					return append(environment(1), c.variable)
				case 1:
					return environment(2)
				}
				// Who starts when the job has ended finds no root: the others have
				// called it before it starts.
				for range 2 {
					conn, err := l.Accept()
					require.NoError(t, err)
					defer conn.Close()
				}
				require.NoError(t, l.Close())
				return environment(0)
			}).Wait()
			for _, err := range errs {
				require.ErrorContains(t, err, "world: Init: root: ")
				require.ErrorContains(t, err, "the ranks disagree: ")
				require.ErrorContains(t, err, c.says)
			}
		})
	}
}

// rootOf sets the environment of a rank without a manager in this process.
func rootOf(t *testing.T, address string, rank int) {
	t.Helper()
	environment(t, nil)
	for _, variable := range rootJob(t, address, 2)(rank)[3:] {
		name, value, _ := strings.Cut(variable, "=")
		t.Setenv(name, value)
	}
}

// What Init waits for is in the log at once, and first in the error.
func TestInitTellsWhatItWaitsFor(t *testing.T) {
	const name = "no-such-host.invalid"
	var unknown *net.DNSError
	_, err := net.DefaultResolver.LookupHost(t.Context(), name)
	require.ErrorAs(t, err, &unknown)
	if !unknown.IsNotFound {
		t.Skipf("skipped: whether a name is known cannot be found out here: %v", err)
	}
	for rank, says := range []string{
		"world: Init: root: rank 0 cannot listen on RMA_ROOT=" + name + ":7000: lookup " + name,
		"world: Init: root: no root: rank 1 got no answer at " + name + ":7000: dial tcp: lookup " + name,
	} {
		rootOf(t, name+":7000", rank)
		longerAndLonger(t, func(within time.Duration) error {
			var log bytes.Buffer
			_, err := world.Init(t.Context(), world.WithStartTimeout(within), world.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			require.ErrorContains(t, err, fmt.Sprintf("root: start timeout of %v is over", within))
			if !strings.Contains(log.String(), "no such host") {
				return tooSoon(fmt.Errorf("no lookup has ended: %w", err))
			}
			require.True(t, strings.HasPrefix(err.Error(), says), "%v", err)
			require.Contains(t, log.String(), "level=WARN")
			return nil
		})
	}
}

// A key without a root is for who serves windows, and is alone.
func TestKeyAlone(t *testing.T) {
	environment(t, nil)
	t.Setenv("RMA_KEY_FILE", keyFile(t))
	w, err := world.Init(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, w.Size())
	// Without a key it would be refused.
	l, err := world.Listen(t.Context(), "0.0.0.0:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.NoError(t, w.Close())
}

// A wrong address is an error also where nothing would listen.
func TestWrongAddress(t *testing.T) {
	environment(t, nil)
	wrong := map[string]string{
		"10.0.0.0/40":   `"40" is no length of a prefix, 0 to 32; allowed are `,
		"192.0.2.2:70":  `has a port, which the system chooses: say "192.0.2.2"; allowed are `,
		"240.0.0.1":     "is not here; it has ",
		"240.0.0.0/4":   "is a range in which it has none; it has ",
		"no-such-inter": "is no address, range or interface, and no host name either: ",
	}
	check := func(err error, address string) {
		require.ErrorIs(t, err, world.ErrEnvironment, address)
		require.ErrorContains(t, err, "RMA_ADDRESS")
		require.ErrorContains(t, err, strconv.Quote(address)+" ")
		require.ErrorContains(t, err, wrong[address])
	}
	exchange := func(_ context.Context, mine string) ([]string, error) { return []string{mine}, nil }
	never := func(context.Context, *world.World) error { return fmt.Errorf("began") }
	for address := range wrong {
		_, err := world.Init(t.Context(), world.WithAddress(address))
		check(err, address)
		t.Setenv("RMA_ADDRESS", address)
		_, err = world.Init(t.Context())
		check(err, address)
		_, err = world.New(t.Context(), 0, 1, exchange)
		check(err, address)
		check(world.Run(t.Context(), 2, never), address)
		require.NoError(t, os.Unsetenv("RMA_ADDRESS"))
	}
	t.Setenv("RMA_ADDRESS", "127.0.0.0/8")
	w, err := world.Init(t.Context())
	require.NoError(t, err)
	require.NoError(t, w.Close())
}
