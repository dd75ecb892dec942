package main

import (
	"fmt"
	"io"
	"log"
)

// Two ranks run a program that does not use this library.
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
