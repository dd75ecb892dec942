package verbstest

import "github.com/onesided/rma/verbs"

// A Server reports what it has done for its peers.
var serverCases = []testCase{
	{"what is served counts as activity", func(b *bench) {
		near, far := b.pair(sizes{})
		server := able[verbs.Server](near.rank)
		theirs, mine := near.allocate(64, all), far.allocate(64, all)
		for id := range uint64(20) {
			before := server.Activity()
			w := theirs.write(id, 0, mine.every())
			far.post(w)
			far.expectSent(done(w))
			if server.Activity() == before {
				b.Fatalf("write %d of the peer was applied, and Activity is %d as before", id, before)
			}
		}
	}},
	{"what peers wait for is counted", func(b *bench) {
		near, far := b.pair(sizes{})
		server := able[verbs.Server](near.rank)
		theirs, mine := near.allocate(64, all), far.allocate(64, all)
		for id := range uint64(20) {
			before := server.Served()
			w := []work{theirs.write(id, 0, mine.every()), theirs.read(id, 0, mine.every()), theirs.fetchAdd(id, 0, 1, mine.at(0, 8))}[id%3]
			far.post(w)
			far.expectSent(done(w))
			if server.Served() == before {
				b.Fatalf("request %d of the peer was carried out, and Served is %d as before", id, before)
			}
		}
		before := server.Served()
		for id := range uint64(20) {
			near.receive(id, theirs.every())
			w := send(id, mine.every())
			far.post(w)
			far.expectSent(done(w))
			near.expectReceived(got(id, 64))
		}
		if served := server.Served(); served != before {
			b.Fatalf("20 messages asked nothing of memory, and Served went from %d to %d", before, served)
		}
	}},
}
