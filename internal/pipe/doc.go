// Package pipe carries messages one way between two ranks that map the same memory: the writer stores them there, and
// the reader loads them. It needs no device, request or completion. A message that fits a cache line costs the reader
// one cache miss.
//
// # The memory
//
// A pipe is Config.Bytes of zeroed memory. Its first line of 64 bytes has the reader's count of freed lines and the
// flag that the writer has left. After it comes a ring of lines for messages. A message begins at a line:
//
//	head      8 bytes   length 32 bits, number 32 bits
//	payload   length bytes
//
// It takes as many consecutive lines as it needs. The last message of a lap may need more lines than the ring has left.
// There is memory for that after the ring, so that every message is contiguous. The next message then begins at the
// first line.
//
// The number of a message is 1 more than the number of lines used before it; the head has its low 32 bits. The head is
// stored last and publishes the message: the reader polls one word for the expected number. Part of an earlier message
// may look like that number where the next message will begin. So before it publishes a message, the writer checks that
// place. It stores another number there only in that case, because a store takes the line from the reader that polls it
// next.
//
// # Room
//
// The reader counts the lines that it has freed in the pipe's first line. It updates the count when a quarter of the
// ring is free again, not at each message. The writer reads the count only when it knows of no room.
//
// # The end
//
// The writer stores in memory that the reader frees some day. The reader may reuse it after the writer has announced
// that it stores nothing more ([Writer.Leave]), or is gone.
//
// # Invariants
//
//   - A message is taken once, complete, in order (TestRandom, against a queue).
//   - Values of the other side are checked as they were loaded. There is no access beyond the memory, and a value that
//     no reader or writer stores is an error that wraps [ErrProtocol] (FuzzReader, FuzzWriter).
//   - Nothing is allocated for a message.
//   - A pipe does not wake its peer. The caller wakes a sleeping peer after Send, and after a Free that returns true.
//
// A Writer, and a Reader, is for one goroutine at a time.
package pipe
