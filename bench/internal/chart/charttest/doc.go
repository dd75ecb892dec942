// Package charttest reads drawings of package chart, and checks that they can be read: nothing is clipped or covered.
package charttest
