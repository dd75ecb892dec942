// Print prints the number of its rank and its arguments.
package main

import "os"

func main() {
	text := "rank " + os.Getenv("PMI_RANK")
	for _, argument := range os.Args[1:] {
		text += " " + argument
	}
	_, _ = os.Stdout.WriteString(text + "\n")
}
