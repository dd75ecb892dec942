//go:build !unix

package proof

import "io/fs"

// isOwn: permission bits mean nothing here.
func isOwn(fs.FileInfo) bool { return false }
