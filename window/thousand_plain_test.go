//go:build !race

package window_test

const many = 1000
