package cases

// A reach returns how many bytes a cell of size n uses of the window and of the buffer, from their beginnings.
type reach func(n int) (window, buffer int)

// hugePage is the size of a page of a large window. A small window gets such a page, too, so that its pages do not depend
// on which cells share it.
const hugePage = 2 << 20

// reachOf returns how large the window and the buffer of cells are, in whole huge pages.
func reachOf(cells []Cell) (window, buffer int) {
	window, buffer = 1, 1
	for _, one := range cells {
		if one.Case.reach != nil {
			w, b := one.Case.reach(one.Size)
			window, buffer = max(window, w), max(buffer, b)
		}
	}
	whole := func(n int) int { return (n + hugePage - 1) / hugePage * hugePage }
	return whole(window), whole(buffer)
}

// front is the reach of one transfer of n bytes.
func front(n int) (window, buffer int) { return n, n }

// operands is the reach of one operation whose operands are not in the buffer.
func operands(n int) (window, buffer int) { return n, 0 }

// streamed is the reach of transfers in flight.
func streamed(n int) (window, buffer int) {
	return endOfStream(n, streamTo), endOfStream(n, streamFrom)
}

// endOfStream returns the end of the last of InFlight transfers of n bytes that begin below bound.
func endOfStream(n, bound int) int {
	end := 0
	for j := range InFlight {
		end = max(end, (j*n)%bound+n)
	}
	return end
}

// scatteredFrom is the number of elements of the buffer from which scatter puts.
const scatteredFrom = 1024

// scattered is the reach of n puts of 8 bytes at random displacements.
func scattered(n int) (window, buffer int) { return windowBytes, 8 * min(n, scatteredFrom) }

// anywhere is the reach of operations at random displacements whose operands are not in the buffer.
func anywhere(int) (window, buffer int) { return windowBytes, 0 }

// mixed is the reach of n operations at random displacements, half of which are gets of 8 bytes.
func mixed(n int) (window, buffer int) { return windowBytes, 8 * (n / 2) }

// everyOther is the reach of n puts of every other 8 bytes.
func everyOther(n int) (window, buffer int) { return 8 * n, 16 * n }

// rowLength is the number of puts in an epoch of row_rate.
const rowLength = 1000

// changingReach is the reach of changing_lat.
func changingReach(n int) (window, buffer int) {
	window, buffer = everyOther(rowLength)
	return max(window, n), max(buffer, n)
}

// gets is the reach of count gets of n bytes, and of at most as many puts.
func gets(count int) reach {
	return func(n int) (window, buffer int) { return getsAt + count*n, getsAt + count*n }
}

// message is the reach of a message and one back.
func message(n int) (window, buffer int) { return 0, getsAt + n }

// messageStream is the reach of messages in flight, and an answer.
func messageStream(n int) (window, buffer int) {
	return 0, getsAt + max(endOfStream(n, streamFrom), answerBytes)
}
