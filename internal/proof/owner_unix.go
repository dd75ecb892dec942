//go:build unix

package proof

import (
	"io/fs"
	"syscall"
)

// ownerOf returns the user that owns a file.
func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
