//go:build unix

package proof

import (
	"io/fs"
	"syscall"
)

// ownerOf is the user that a file belongs to.
func ownerOf(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
