package hashtable

import "testing"

// The model explores every order of steps while an index is replaced, with and without deaths. Results and values are
// those of some order of operations. No key has two slots, and no client can reach a free record or index. Every client
// that is left can end the move alone. The wrong variants are found.
func TestModelGrowth(t *testing.T) {
	const (
		a, b = 0, 1
		// One of these may die.
		first, all = 1, 1<<growClients - 1
	)
	const none, there, gone = keyNone, keyThere, keyGone
	on := func(kind opKind) func(key uint8) growOp {
		return func(key uint8) growOp { return growOp{kind: kind, key: key} }
	}
	get, put, remove, replace := on(opGet), on(opPut), on(opDelete), growOp{kind: opMove}
	type keys = [growKeys]keyBefore
	type clients = [growClients][]growOp
	for _, c := range []struct {
		name string
		growVariant
		before   keys
		programs clients
	}{
		{"a put and a get", growVariant{mortal: all}, keys{there, none}, clients{{replace}, {put(a)}, {get(a)}}},
		{"a put and a delete", growVariant{mortal: all}, keys{there, none}, clients{{replace}, {put(a)}, {remove(a)}}},
		{"puts of a new key", growVariant{mortal: all}, keys{none, none}, clients{{replace}, {put(a)}, {put(a)}}},
		{"puts of a deleted key", growVariant{mortal: all}, keys{gone, none}, clients{{replace}, {put(a)}, {put(a)}}},
		{"puts of a deleted key, as many slots", growVariant{mortal: all, asMany: true}, keys{gone, none}, clients{{replace}, {put(a)}, {put(a)}}},
		{"two keys", growVariant{mortal: all}, keys{there, there}, clients{{replace}, {put(a)}, {remove(b)}}},
		{"two keys, as many slots", growVariant{mortal: all, asMany: true}, keys{gone, there}, clients{{replace}, {put(a)}, {remove(b)}}},
		{"a key that goes and comes", growVariant{mortal: first}, keys{there, none}, clients{{replace}, {remove(a), put(a)}, {get(a), get(a)}}},
		{"a key that goes and comes far away", growVariant{mortal: all, remote: true}, keys{there, none}, clients{{replace}, {remove(a), put(a)}, {get(a)}}},
		{"two who replace", growVariant{mortal: all}, keys{there, gone}, clients{{replace}, {replace}, {remove(a)}}},
		{"one index after another", growVariant{}, keys{there, none}, clients{{replace, replace}, {remove(a)}, {replace}}},
		{"one index after another, whoever dies", growVariant{mortal: all}, keys{there, none}, clients{{replace, replace}, {put(a), remove(a)}, {}}},
		{"one index after another far away", growVariant{remote: true}, keys{there, none}, clients{{replace, replace}, {remove(a)}, {get(a)}}},
		{"one index after another far away, as many slots", growVariant{mortal: all, asMany: true, remote: true}, keys{gone, there}, clients{{replace, replace}, {put(a), remove(b)}, {}}},

		{"keys are copied before they are frozen", growVariant{fault: notFrozen}, keys{there, none}, clients{{replace}, {put(a)}, {}}},
		{"slots are moved before they are copied", growVariant{fault: movedFirst}, keys{there, none}, clients{{replace}, {get(a)}, {}}},
		{"two indexes are published", growVariant{fault: publishedTwice}, keys{there, none}, clients{{replace}, {replace}, {}}},
		{"an index is published by what is read of the next one", growVariant{fault: publishedByNext}, keys{there, none}, clients{{replace, replace}, {replace}, {}}},
		{"a closed slot is taken", growVariant{fault: closedTaken}, keys{none, none}, clients{{replace}, {put(a)}, {}}},
		{"a new key has no slot closed", growVariant{fault: notClosed}, keys{none, none}, clients{{replace}, {put(a)}, {put(a)}}},
		{"a frozen slot names what is replaced", growVariant{fault: keptNamed}, keys{there, none}, clients{{replace}, {put(a)}, {}}},
		{"a put counts as having come before its slot was frozen", growVariant{fault: frozenLast}, keys{there, none}, clients{{replace}, {put(a)}, {}}},
		{"a copy replaces a newer value", growVariant{fault: copiedOver}, keys{there, none}, clients{{replace}, {put(a)}, {}}},
		{"a key is copied to an index that was left", growVariant{fault: copiedOnward}, keys{there, none}, clients{{remove(a)}, {replace}, {replace, replace}}},
		{"an index is left when all has been begun", growVariant{fault: turnedEarly}, keys{there, none}, clients{{replace}, {replace}, {}}},
		{"nobody ends what another has begun", growVariant{mortal: first, fault: leftAlone}, keys{none, none}, clients{{replace}, {put(a)}, {}}},
		{"a key that has left is not looked for", growVariant{fault: leftMissed}, keys{there, none}, clients{{replace}, {get(a)}, {}}},
		{"an index is free at once", growVariant{fault: indexFreed}, keys{there, none}, clients{{replace}, {get(a)}, {}}},
		{"keys are moved by an old view", growVariant{fault: viewKept}, keys{there, none}, clients{{replace}, {replace}, {}}},
		{"an old view is not read again", growVariant{remote: true, fault: outdatedTaken}, keys{there, none}, clients{{replace}, {get(a)}, {}}},
		{"a deleted key is dropped twice", growVariant{fault: droppedTwice}, keys{gone, none}, clients{{replace}, {replace}, {}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			skipUnlessTurn(t, c.name)
			m := newGrowModel(c.growVariant, c.programs)
			m.explore(m, m.initial(c.before), c.fault != noFault)
			m.judge(t, c.fault != noFault)
		})
	}
}
