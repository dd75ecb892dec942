//go:build !race

package hashtable

const fewer = 1
