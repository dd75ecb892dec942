package ibv

import (
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/onesided/rma/verbs"
)

// Options are the options of a device.
type Options struct {
	// Device is the card and, after a colon, its port: "mlx5_0", "mlx5_0:2". Without a port it is the card's first
	// active port. If empty, it is the first card with an active port. Several, separated by commas, are for Rails.
	Device string
	// GID selects the entry of the port's table that is this side's address, if the fabric needs one (RoCE does): an
	// index, or an IP address of an entry. If empty, it is the best: RoCE v2 with an IPv4 address, then with an IPv6
	// address, then RoCE v1.
	GID string
	// MTU is the maximum packet size in bytes: 256, 512, 1024, 2048 or 4096. It is less if this port or the peer's
	// supports less. Zero is the maximum that both support.
	MTU int
	// Answer is the time without an acknowledgement after which the card sends a packet again, rounded up to 4.096 us
	// times a power of two. The card does so six times, each of which may take up to four times as long; then the peer
	// has failed. Zero means 268 ms.
	Answer time.Duration
	// OnDemand registers memory without pinning it. Open returns an error if the card does not offer that. Atomics that
	// the card does not offer on such memory are then not the card's.
	OnDemand bool

	// Listen is the host and port where peers call to exchange the addresses of queue pairs. The port may be 0. If
	// empty, it is port 0 of the loopback address. These connections carry no data, and may use any network.
	Listen string
	// Advertise is the host, or host and port, that peers use instead of Listen's. It is required if Listen names no
	// single host.
	Advertise string
	// Key is the job's secret, 16 to 512 random bytes. Without a key any process that reaches the port may connect.
	// That is allowed only if Listen is a loopback address.
	Key []byte
	// Silence is the time without a sign of life after which a peer is given up, whether or not there is anything to
	// send. Zero means 10 seconds.
	Silence time.Duration
	// HandshakeLimit bounds the time until a called peer responds and the key is proved. Zero means 5 seconds, or
	// Silence if that is less.
	HandshakeLimit time.Duration
	// Logger logs rejected connections, and ports that go down and come back. A Logger that blocks delays nothing else.
	// Nil logs nothing.
	Logger *slog.Logger
}

// FromEnvironment returns Options with Device and GID from the environment variables RMA_IBV_DEVICE and RMA_IBV_GID.
func FromEnvironment() Options {
	return Options{Device: os.Getenv("RMA_IBV_DEVICE"), GID: os.Getenv("RMA_IBV_GID")}
}

// Rails returns the options of each of several cards, whose names Device lists, separated by commas. GID then lists an
// entry of each card's table, or one for all.
func (o Options) Rails() ([]Options, error) {
	devices, gids := strings.Split(o.Device, ","), strings.Split(o.GID, ",")
	if len(gids) != 1 && len(gids) != len(devices) {
		return nil, &verbs.ArgumentError{Device: deviceName, Text: "Options: GID is " + o.GID + " and Device " + o.Device + "; GID must be as many entries as Device names cards, or one"}
	}
	rails := make([]Options, len(devices))
	for i := range rails {
		rails[i] = o
		rails[i].Device, rails[i].GID = devices[i], gids[i%len(gids)]
		if devices[i] == "" && len(devices) > 1 {
			return nil, &verbs.ArgumentError{Device: deviceName, Text: "Options: Device is " + o.Device + ", of which a name is empty; it must be names of cards with commas between them"}
		}
	}
	return rails, nil
}

// deviceName is the prefix of names of devices and of error texts.
const deviceName = "ibv"
