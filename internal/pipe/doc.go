// Package pipe carries messages between two ranks that map the same memory, one way: the one
// stores them there, the other loads them. It takes no device, no request and no completion, and of
// a message that fits into a cache line the reader fetches that line alone.
//
// # The memory
//
// A pipe is Config.Bytes of zeroed memory: a line of 64 bytes that has what the reader tells, and whether the
// writer has left, and a ring of lines for messages. A message begins at a line:
//
//	head      8 bytes   length 32 bits, number 32 bits
//	payload   length bytes
//
// and takes as many lines as it needs, one behind the other. The last of a lap may need more than
// there are: behind the ring there is room for that, so that every message is one piece of memory.
// The next one begins at the first line then.
//
// The number of a message is one more than the lines that were taken before it, of which the low 32
// bits are told. The head is stored last, and publishes the message: the reader looks at one word, for
// the number that is due. Where the next message is going to begin there may be a part of an earlier
// one that looks like that: before it publishes a message the writer looks there, and stores another number in that
// case only, since a store takes the line away from the reader that is going to look at it.
//
// # Room
//
// The reader counts the lines that it has freed in the pipe's first line, not at each message but when
// those of a quarter of the ring are free again. The writer looks there only when it knows of no room.
//
// # The end
//
// The writer stores in memory that the reader gives back some day. It may be used for something else when the
// writer has said that it stores there no more ([Writer.Leave]), or is gone.
//
// # Invariants
//
//   - A message is taken once, complete, in order (TestRandom, against a queue).
//   - What the other side writes is checked as it was loaded: there is no access beyond the memory,
//     and what no reader or writer says is an error that wraps [ErrProtocol] (FuzzReader, FuzzWriter).
//   - Nothing is allocated for a message.
//   - A pipe wakes nobody: who sleeps has to be rung, after Send, and after Free where that says so.
//
// A Writer, and a Reader, is for one goroutine at a time.
package pipe
