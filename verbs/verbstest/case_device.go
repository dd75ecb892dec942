package verbstest

import (
	"strings"
	"time"
	"unicode"
)

// A device describes itself.
var deviceCases = []testCase{
	{"attributes", func(b *bench) {
		near := b.near()
		a := near.device.Attributes()
		if a.Name == "" || a.MaxSegments < 1 || a.MaxMessage < 1 || a.MaxInline < 0 || a.Spin < 0 {
			b.Errorf("the attributes are %+v", a)
		}
		near.allocate(4096, all)
		if now := near.device.Attributes(); now != a {
			b.Errorf("the attributes were %+v, are %+v", a, now)
		}
	}},
	{"costs", func(b *bench) {
		c := b.near().device.Costs()
		for what, d := range map[string]time.Duration{
			"Post": c.Post, "Gap": c.Gap, "Latency": c.Latency, "ReadLatency": c.ReadLatency, "CopyLatency": c.CopyLatency,
			"Register": c.Register, "RegisterPage": c.RegisterPage, "Deregister": c.Deregister, "DeregisterPage": c.DeregisterPage,
		} {
			if d < 0 {
				b.Errorf("%s is %v", what, d)
			}
		}
		for what, rate := range map[string]float64{
			"Bandwidth": c.Bandwidth, "DuplexBandwidth": c.DuplexBandwidth, "CopyBandwidth": c.CopyBandwidth,
		} {
			if !(rate >= 0) || rate*0 != 0 {
				b.Errorf("%s is %v", what, rate)
			}
		}
	}},
	{"addresses", func(b *bench) {
		near, far := b.two()
		for _, address := range []string{near.address, far.address} {
			odd := func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) }
			if address == "" || len(address) > 256 || strings.IndexFunc(address, odd) >= 0 {
				b.Errorf("the address %q is not 1 to 256 printable bytes without spaces", address)
			}
		}
		if near.address == far.address {
			b.Errorf("two devices have the address %s", near.address)
		}
		if now := near.device.Address(); now != near.address {
			b.Errorf("the address was %s, is %s", near.address, now)
		}
	}},
	{"the clock never goes back", func(b *bench) {
		near := b.near()
		last := near.device.Now()
		for range 10_000 {
			now := near.device.Now()
			if now < last {
				b.Fatalf("the clock went from %v to %v", last, now)
			}
			last = now
		}
	}},
	{"the clock moves while the rank sleeps", func(b *bench) {
		near := b.near()
		before := near.device.Now()
		err := near.station.await("the passing of time", func() bool {
			ticket := near.device.Channel().Prepare()
			near.station.config.sleep(near.device, ticket, time.Millisecond)
			near.device.Channel().Finish()
			return near.device.Now() > before
		})
		b.check(err, "sleeping")
	}},
	{"copy", func(b *bench) {
		near := b.near()
		source := noise(1, 1000)
		for _, lengths := range [][2]int{{0, 0}, {0, 5}, {5, 0}, {1000, 1000}, {10, 1000}, {1000, 10}, {999, 1000}} {
			into := noise(2, 1000)
			want := noise(2, 1000)
			n := copy(want[:lengths[0]], source[:lengths[1]])
			if got := near.device.Copy(into[:lengths[0]], source[:lengths[1]]); got != n {
				b.Errorf("Copy of %d bytes into %d returned %d", lengths[1], lengths[0], got)
			}
			if difference := differ(into, want); difference != "" {
				b.Errorf("Copy of %d bytes into %d: %s", lengths[1], lengths[0], difference)
			}
		}
	}},
	{"there is one channel", func(b *bench) {
		near := b.near()
		if near.device.Channel() != near.device.Channel() {
			b.Error("Channel returns another channel each time")
		}
	}},
	{"a queue for no completions", func(b *bench) {
		near := b.near()
		if _, err := near.device.CreateCompletionQueue(-1); err == nil {
			b.Error("CreateCompletionQueue(-1) went well")
		}
	}},
}
