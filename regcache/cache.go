package regcache

// Limits bound what a cache keeps that is not in use, and with it.
type Limits struct {
	// Bytes and Regions are the most that are kept. With 0 of either nothing is, once it is not in
	// use.
	Bytes   uint64
	Regions int
}

// A Cache keeps regions R that a card knows, by their addresses, when they are not used any more
// (lazy deregistration, papers B and E), the least recently used of which end when there are
// too many. To note each use in order would cost more than to find the entry: one that is used
// becomes the newest only if an eighth of the entries have been added since it last became that, so
// the order is exact but for that eighth.
//
// # Invariants
//
// No address belongs to two entries. An entry is in the tree as long as it has a piece, and in the
// order of use as long; it has ended when it has neither a piece nor a use, and only then may its
// region be deregistered. Entries of which nothing is in use keep within the limits.
//
// It is not for several goroutines at once.
type Cache[R any] struct {
	limits  Limits
	known   intervals[R]
	scratch []interval[R]
	// oldest and newest are the ends of the order of use.
	oldest, newest *Entry[R]
	// added counts entries, and now the uses of buffers.
	added uint64
	now   uint32
	ended []R
	stats Stats
}

// Stats of a cache count what has happened, and what there is.
type Stats struct {
	// Hits and Misses are of looks for what is kept, of which an operation may take some, Evictions
	// what was ended because there was too much, and Invalidations what was ended because its
	// memory is no more.
	Hits, Misses, Evictions, Invalidations uint64
	// Bytes and Regions are what the cache keeps.
	Bytes   uint64
	Regions int
}

// An Entry is a region in a cache. Who has it from Find or Add uses it, until Release.
type Entry[R any] struct {
	Region R
	// From and To are the addresses that were registered.
	From, To uint64

	pieces, uses int32
	// used is when it was last.
	used uint32
	// moved is how many entries were added when it last became the newest.
	moved        uint64
	older, newer *Entry[R]
	// whole is whether it has all of its addresses.
	whole bool
	// known is whether it is in the order of use.
	known bool
}

// New makes a cache.
func New[R any](limits Limits) *Cache[R] {
	return &Cache[R]{limits: limits, known: newIntervals[R]()}
}

// Find gives the entry that has all addresses of an extent, which is in use then, or nil. An empty
// extent is nowhere.
func (c *Cache[R]) Find(from, to uint64) *Entry[R] {
	i, ok := c.known.at(from)
	if !ok || to > i.to || from >= to {
		c.stats.Misses++
		return nil
	}
	c.stats.Hits++
	c.use(i.entry)
	return i.entry
}

// Again is Find by one who knows which entry it was, if that has all of the extent still.
func (c *Cache[R]) Again(e *Entry[R], from, to uint64) bool {
	if !e.whole || from < e.From || to > e.To {
		return false
	}
	c.stats.Hits++
	c.use(e)
	return true
}

func (c *Cache[R]) use(e *Entry[R]) {
	e.uses++
	e.used = c.now
	if c.added-e.moved > uint64(c.stats.Regions)/8 {
		c.unlink(e)
		c.link(e)
	}
}

// Cover is what to register to have all of an extent, and what is known of the memory around it
// too: buffers that overlap are one region then, and do not take turns.
func (c *Cache[R]) Cover(from, to uint64) (first, last uint64) {
	first, last = from, to
	c.known.each(from, to, func(i interval[R]) {
		first, last = min(first, i.from), max(last, i.to)
	})
	return first, last
}

// Add has the cache know a region, in the place of all that it knew of these addresses. The entry
// is in use.
func (c *Cache[R]) Add(from, to uint64, region R) *Entry[R] {
	c.cut(from, to)
	e := &Entry[R]{Region: region, From: from, To: to, uses: 1, used: c.now, whole: true}
	c.known.add(interval[R]{from, to, e})
	c.added++
	c.link(e)
	c.stats.Regions++
	c.stats.Bytes += to - from
	c.shrink()
	return e
}

// Release ends a use of an entry.
func (c *Cache[R]) Release(e *Entry[R]) {
	if e.uses--; e.uses > 0 {
		return
	}
	if e.pieces == 0 {
		c.ended = append(c.ended, e.Region)
	} else if c.full() {
		c.shrink()
	}
}

// Drop has an entry found no more, because its memory is not what it was.
func (c *Cache[R]) Drop(e *Entry[R]) {
	if e.pieces == 0 {
		return
	}
	c.stats.Invalidations++
	c.remove(e)
}

// Invalidate has nothing found any more that has memory of an extent, which the program has given
// back. What is left of regions that had more stays known.
func (c *Cache[R]) Invalidate(from, to uint64) {
	c.stats.Invalidations += uint64(c.cut(from, to))
}

// AnyEnded tells whether Ended has one to give.
func (c *Cache[R]) AnyEnded() bool { return len(c.ended) > 0 }

// Clear has nothing found any more.
func (c *Cache[R]) Clear() {
	for c.oldest != nil {
		c.remove(c.oldest)
	}
}

// Prune has nothing found any more of what has memory of an extent and is not alive.
func (c *Cache[R]) Prune(from, to uint64, alive func(R) bool) {
	var dead []*Entry[R]
	c.known.each(from, to, func(i interval[R]) {
		if !alive(i.entry.Region) {
			dead = append(dead, i.entry)
		}
	})
	for _, e := range dead {
		c.Drop(e)
	}
}

// Ended gives a region that is neither known nor in use any more, to be deregistered.
func (c *Cache[R]) Ended() (region R, some bool) {
	n := len(c.ended)
	if n == 0 {
		return region, false
	}
	region = c.ended[n-1]
	clear(c.ended[n-1:])
	c.ended = c.ended[:n-1]
	return region, true
}

// Stats tells what has happened.
func (c *Cache[R]) Stats() Stats { return c.stats }

// cut takes an extent from all that have something of it, and gives how many have nothing left.
func (c *Cache[R]) cut(from, to uint64) (forgotten int) {
	c.scratch = c.known.cut(from, to, c.scratch)
	for _, i := range c.scratch {
		// It may have had several pieces there.
		if i.entry.pieces == 0 && i.entry.known {
			c.forget(i.entry)
			forgotten++
		}
	}
	clear(c.scratch)
	return forgotten
}

// remove takes all pieces of an entry.
func (c *Cache[R]) remove(e *Entry[R]) {
	c.scratch = c.scratch[:0]
	c.known.each(e.From, e.To, func(i interval[R]) {
		if i.entry == e {
			c.scratch = append(c.scratch, i)
		}
	})
	for _, i := range c.scratch {
		c.known.remove(i)
	}
	clear(c.scratch)
	c.forget(e)
}

// forget has an entry without pieces be none of the cache's.
func (c *Cache[R]) forget(e *Entry[R]) {
	c.unlink(e)
	c.stats.Regions--
	c.stats.Bytes -= e.To - e.From
	if e.uses == 0 {
		c.ended = append(c.ended, e.Region)
	}
}

// full tells whether more is kept than the limits allow.
func (c *Cache[R]) full() bool {
	return c.stats.Bytes > c.limits.Bytes || c.stats.Regions > c.limits.Regions
}

// fits tells whether there is room for another region of so many bytes.
func (c *Cache[R]) fits(bytes uint64) bool {
	return c.stats.Bytes+bytes <= c.limits.Bytes && c.stats.Regions < c.limits.Regions
}

// stale tells whether the least recently used entry was not used since a time. One that was is the newest
// then, so that it is another that is looked at next.
func (c *Cache[R]) stale(since uint32) bool {
	e := c.oldest
	for e != nil && e.uses > 0 {
		e = e.newer
	}
	if e != nil && int32(e.used-since) > 0 {
		c.unlink(e)
		c.link(e)
		return false
	}
	return e != nil
}

// room tells whether there is room for another region of so many bytes if those end that were not used since
// a time.
func (c *Cache[R]) room(bytes uint64, since uint32) bool {
	bytes += c.stats.Bytes
	regions := c.stats.Regions + 1
	for e := c.oldest; e != nil && (bytes > c.limits.Bytes || regions > c.limits.Regions); e = e.newer {
		if e.uses == 0 {
			if int32(e.used-since) > 0 {
				return false
			}
			bytes -= e.To - e.From
			regions--
		}
	}
	return bytes <= c.limits.Bytes && regions <= c.limits.Regions
}

// shrink ends the least recently used entries that are not in use, until what is kept is within the
// limits.
func (c *Cache[R]) shrink() {
	for e := c.oldest; e != nil && c.full(); {
		next := e.newer
		if e.uses == 0 {
			c.stats.Evictions++
			c.remove(e)
		}
		e = next
	}
}

func (c *Cache[R]) link(e *Entry[R]) {
	if e.older = c.newest; e.older != nil {
		e.older.newer = e
	} else {
		c.oldest = e
	}
	c.newest, e.known, e.moved = e, true, c.added
}

func (c *Cache[R]) unlink(e *Entry[R]) {
	if e.older != nil {
		e.older.newer = e.newer
	} else {
		c.oldest = e.newer
	}
	if e.newer != nil {
		e.newer.older = e.older
	} else {
		c.newest = e.older
	}
	e.older, e.newer, e.known = nil, nil, false
}
