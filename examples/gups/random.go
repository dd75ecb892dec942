package main

import "math/bits"

// The random numbers are the powers of x in the field of polynomials over bits modulo x^64 + x^2 + x + 1. poly is the
// low part of that polynomial. Number 0 is 1.
const poly = 7

// next returns the number after a.
func next(a uint64) uint64 { return a<<1 ^ uint64(int64(a)>>63)&poly }

// times returns the product.
func times(a, b uint64) (product uint64) {
	for b != 0 {
		if b&1 != 0 {
			product ^= a
		}
		a, b = next(a), b>>1
	}
	return product
}

// jump returns number n.
func jump(n uint64) uint64 {
	power := uint64(1)
	for bit := bits.Len64(n) - 1; bit >= 0; bit-- {
		power = times(power, power)
		if n>>bit&1 != 0 {
			power = next(power)
		}
	}
	return power
}
