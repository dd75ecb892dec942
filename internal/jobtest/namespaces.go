package jobtest

import (
	"os/exec"
	"testing"

	"github.com/onesided/rma/internal/nettest"
)

// mostHosts is the greatest number of hosts on which Namespaces places ranks.
const mostHosts = 3

// Namespaces runs the body on n processes on three hosts, or n if that is less, of a network of their own. The ranks
// of one host share memory, and reach those of others over TCP. The test is skipped without root.
func Namespaces(t *testing.T, n int, name string) {
	t.Helper()
	StartAcross(t, min(n, mostHosts), n, name, nil).Succeeds()
}

// StartAcross is like StartWith, for ranks on hosts of a network of their own: rank r is on host r % hosts. The test
// can cut the hosts off by Job.Cut. The ranks' manager stays reachable from every host. environment may be nil. The
// test is skipped without root.
func StartAcross(t *testing.T, hosts, n int, name string, environment func(rank int) []string) *Job {
	t.Helper()
	return StartOnNetwork(t, nettest.New(t, hosts), n, name, environment, func(rank int) int { return rank % hosts })
}

// StartOnNetwork is like StartAcross, on a network that the test has made. Rank r is on host host(r).
func StartOnNetwork(t *testing.T, network *nettest.Network, n int, name string, environment func(rank int) []string, host func(rank int) int) *Job {
	t.Helper()
	all := func(rank int) []string {
		common := []string{"RMA_DEVICE=", "RMA_HOST=", "RMA_ADDRESS="}
		if environment == nil {
			return common
		}
		return append(common, environment(rank)...)
	}
	j := StartOn(t, n, name, all, func(rank int, program string) *exec.Cmd { return network.Command(host(rank), program) })
	j.network = network
	return j
}

// Cut takes the link of a host down. Packets on their way over it are lost. The job must come from StartAcross or
// StartOnNetwork.
func (j *Job) Cut(host int) {
	j.t.Helper()
	j.hosts().Cut(host)
}

// Join takes the link of a host up again, and returns when it carries packets.
func (j *Job) Join(host int) {
	j.t.Helper()
	j.hosts().Join(host)
}

func (j *Job) hosts() *nettest.Network {
	j.t.Helper()
	if j.network == nil {
		j.t.Fatal("jobtest: the ranks are not on hosts of a network: start them by StartAcross")
	}
	return j.network
}
