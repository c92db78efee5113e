// Package pulls runs the controllers of images together in a simulated cluster, whose nodes pull as real daemons decide it and whose clock
// the test moves: what takes minutes or a day takes no time here.
package pulls
