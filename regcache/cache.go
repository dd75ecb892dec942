package regcache

// Limits bound what a cache keeps, including regions in use. A region in use is not evicted.
type Limits struct {
	// Bytes and Regions are the maximum that is kept. If either is 0, no region is kept after its use.
	Bytes   uint64
	Regions int
}

// A Cache keeps registered regions R, by their addresses, after their use (lazy deregistration, papers B and E of
// docs/papers.md). When there are too many, the least recently used are evicted. The order of use is approximate: a use
// makes an entry the newest only if at least an eighth as many entries as the cache holds were added since it last
// became the newest. To record each use would cost more than to find the entry.
//
// # Invariants
//
// No address belongs to two entries. An entry is in the tree, and in the order of use, as long as it has a piece. It
// has ended when it has neither a piece nor a use. Only then may its region be deregistered. Entries that are not in
// use are evicted until the cache is within its limits.
//
// A Cache must not be used by several goroutines at once.
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

// Stats are the counters of a cache and its contents.
type Stats struct {
	// Hits and Misses count look-ups, of which an operation may make several. Evictions counts regions that ended
	// because there were too many, Invalidations those that ended because their memory was freed.
	Hits, Misses, Evictions, Invalidations uint64
	// Bytes and Regions are what the cache keeps.
	Bytes   uint64
	Regions int
}

// An Entry is a region in a cache. It is in use from the Find or Add that returned it until Release.
type Entry[R any] struct {
	Region R
	// From and To are the range of addresses that was registered.
	From, To uint64

	pieces, uses int32
	// used is the time of the last use, by Cache.now.
	used uint32
	// moved is the value of Cache.added when the entry last became the newest.
	moved        uint64
	older, newer *Entry[R]
	// whole is set while the entry has all of its addresses.
	whole bool
	// known is set while the entry is in the order of use.
	known bool
}

// New returns an empty cache.
func New[R any](limits Limits) *Cache[R] {
	return &Cache[R]{limits: limits, known: newIntervals[R]()}
}

// Find returns the entry that contains the whole range of addresses, which is then in use, or nil. It returns nil for
// an empty range. The caller calls Release when its use has ended.
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

// Again is Find for a caller that knows the entry. It reports whether the entry still contains the whole range, and is
// then in use until Release.
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

// Cover returns the range to register for a range of addresses. It includes the known regions that overlap the range,
// so that overlapping buffers share one region and do not replace each other.
func (c *Cache[R]) Cover(from, to uint64) (first, last uint64) {
	first, last = from, to
	c.known.each(from, to, func(i interval[R]) {
		first, last = min(first, i.from), max(last, i.to)
	})
	return first, last
}

// Add adds a region, which replaces all that the cache has in its range. The entry is in use until Release.
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

// Drop removes an entry, because its memory is not what it was.
func (c *Cache[R]) Drop(e *Entry[R]) {
	if e.pieces == 0 {
		return
	}
	c.stats.Invalidations++
	c.remove(e)
}

// Invalidate removes a range that the program has freed. The rest of regions that overlap it stays in the cache.
func (c *Cache[R]) Invalidate(from, to uint64) {
	c.stats.Invalidations += uint64(c.cut(from, to))
}

// AnyEnded reports whether Ended has a region to return.
func (c *Cache[R]) AnyEnded() bool { return len(c.ended) > 0 }

// Clear removes all entries.
func (c *Cache[R]) Clear() {
	for c.oldest != nil {
		c.remove(c.oldest)
	}
}

// Prune removes the entries that overlap a range and are not alive.
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

// Ended returns a region that is neither in the cache nor in use any more, to be deregistered. some is false if there
// is none.
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

// Stats returns the counters.
func (c *Cache[R]) Stats() Stats { return c.stats }

// cut removes a range from all entries that overlap it, and returns the number of entries that have nothing left.
func (c *Cache[R]) cut(from, to uint64) (forgotten int) {
	c.scratch = c.known.cut(from, to, c.scratch)
	for _, i := range c.scratch {
		// The entry may have had several pieces in the range.
		if i.entry.pieces == 0 && i.entry.known {
			c.forget(i.entry)
			forgotten++
		}
	}
	clear(c.scratch)
	return forgotten
}

// remove removes all pieces of an entry.
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

// forget removes an entry without pieces from the order of use and the statistics.
func (c *Cache[R]) forget(e *Entry[R]) {
	c.unlink(e)
	c.stats.Regions--
	c.stats.Bytes -= e.To - e.From
	if e.uses == 0 {
		c.ended = append(c.ended, e.Region)
	}
}

// full reports whether more is kept than the limits allow.
func (c *Cache[R]) full() bool {
	return c.stats.Bytes > c.limits.Bytes || c.stats.Regions > c.limits.Regions
}

// fits reports whether there is room for another region of bytes.
func (c *Cache[R]) fits(bytes uint64) bool {
	return c.stats.Bytes+bytes <= c.limits.Bytes && c.stats.Regions < c.limits.Regions
}

// stale reports whether the least recently used entry has not been used since a time. If it has, stale makes it the
// newest, so that the next call checks another entry.
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

// room reports whether there is room for another region of bytes after the entries not used since a time are evicted.
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

// shrink evicts the least recently used entries that are not in use, until the cache is within the limits.
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
