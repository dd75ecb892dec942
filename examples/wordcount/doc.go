// Wordcount counts the words of files in a hash table that its ranks share.
//
//	wordcount [-top 20] [-verify] PATH...
//
//	go run ./cmd/rmarun -n 4 ./examples/wordcount -verify /usr/share/doc
//	go run ./examples/wordcount -ranks 2 notes.txt
//
// Rank 0 lists the files under every PATH and cuts them into tasks, the largest first. A task is a piece of a large
// file, or several small files. The list stays in rank 0's part of a window. Each rank takes the next task by an atomic
// add to a counter there, and reads the task by Get. It counts the words in a local table, a tally. The tally's counts
// are added to the distributed hash table in batches, when the tally is full and at the end. Then every rank goes
// through the words that it owns, and rank 0 prints the most frequent words of all.
//
// # Words
//
// A word is a maximal sequence of letters, decimal digits (Unicode's classes L and Nd) and underscores, in UTF-8. Any
// other character separates words, and so does a byte that is not part of valid UTF-8. Case matters. A word of more
// than 1024 bytes is not counted as a word; the number of such words is printed.
//
// A word belongs to the piece of a file in which its first byte lies. A piece is read from four bytes before its
// start. They are enough to find whether a word that seems to begin at the start began before it. A piece is read
// beyond its end until the last word that began in it is complete.
//
// # Files
//
// A file with a NUL among its first 8 KiB is binary and is skipped. If a file grows after it was listed, only the part
// that was listed is counted. A file or directory that cannot be read, or a file that has become shorter, is reported,
// and the job continues. Symbolic links are followed only if they are a PATH.
//
// # Errors
//
// An error of one rank reaches all: a rank whose table is full ends the distribution of tasks, and all ranks agree on
// the error at the end of the count. A rank that dies ends the job with an error that names it.
//
// Standard output is the same for the same files, whatever the number of ranks. Times go to standard error.
package main
