package main

import (
	"fmt"
	"io"
	"log"
)

// Two ranks of a program that knows nothing of ranks.
func Example() {
	o, err := parse([]string{"-n", "2", "echo", "a", "rank"}, io.Discard)
	if err != nil {
		log.Fatal(err)
	}
	status, err := run(o)
	fmt.Println(status, err)
	// Output:
	// a rank
	// a rank
	// 0 <nil>
}
