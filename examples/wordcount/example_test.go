package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Three ranks count the words of two files.
func Example() {
	top, err := os.MkdirTemp("", "wordcount")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(top)
	for name, text := range map[string]string{"a.txt": "the cat and the dog", "b.txt": "the end\n"} {
		if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o666); err != nil {
			fmt.Println(err)
			return
		}
	}
	status := command(context.Background(), []string{"-ranks", "3", "-top", "2", "-verify", top}, os.Stdout, os.Stderr, false)
	fmt.Println("exit status", status)
	// Output:
	// count   share  word
	//     3  42.86%  the
	//     1  14.29%  and
	//
	//  2 files
	// 27 bytes
	//  7 words
	//  5 different words
	// verified: a plain count finds the same 5 different words, the same count of each, and the same totals
	// exit status 0
}
