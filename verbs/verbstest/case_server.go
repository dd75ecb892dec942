package verbstest

import "github.com/onesided/rma/verbs"

// A Server reports what it has done for its peers, and serves them whether it dwells or not.
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
	{"a poll looks at least once", func(b *bench) {
		server := able[verbs.Server](b.near())
		for range 3 {
			if looks := server.Dwell(true); looks < 1 {
				b.Fatalf("Dwell(true) tells of %d looks", looks)
			}
			if looks := server.Dwell(false); looks != 1 {
				b.Fatalf("Dwell(false) tells of %d looks", looks)
			}
		}
	}},
	{"who dwells serves and is served", func(b *bench) {
		near, far := b.pair(sizes{})
		server := able[verbs.Server](near.rank)
		theirs, mine := far.allocate(4096, all), near.allocate(4096, all)
		for id := range uint64(20) {
			server.Dwell(id%2 == 0)
			data := mine.fill(id)
			w := theirs.write(id, 0, mine.every())
			near.post(w)
			near.expectSent(done(w))
			theirs.expect(data, "a write of who dwells")
			w = mine.read(id, 0, theirs.every())
			far.post(w)
			far.expectSent(done(w))
			theirs.expect(data, "a read from who dwells")
		}
	}},
}
