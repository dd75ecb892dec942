package job

// The public World and Listener are in package world, which has this package do everything. Package window is given a public World
// and works with the World of this package; a function that the init of package world sets finds one by the other.
var (
	worldOf    = func(any) *World { return nil }
	listenerOf = func(any) *Listener { return nil }
)

// Unmade stands for a World that a program has made by itself. Calls return an error for it.
var Unmade = new(World)

// SetFace is called once, by package world.
func SetFace(world func(w any) *World, listener func(l any) *Listener) {
	worldOf, listenerOf = world, listener
}

// Of returns the World behind a *world.World: nil for nil, and Unmade for one that no call of package world has made.
func Of(w any) *World { return worldOf(w) }

// ListenerOf returns the Listener behind a *world.Listener, nil for nil.
func ListenerOf(l any) *Listener { return listenerOf(l) }
