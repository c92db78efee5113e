// Package script runs small Lua scripts of a cluster's operators, which say how objects of kinds lead traffic that this build does not
// know.
//
// A script is a function of its input: it has no files, no modules, no clock and no random numbers, and gives the same answer whenever it
// is asked. Each run has its own state, and ends within Limits: so many instructions, so deep, so many bytes of text, so much time. What
// the interpreter does not limit is limited by what stands in for it:
//
//	a loop without end        a count of instructions, in the context that the interpreter asks before each of them
//	text that grows           a budget that "..", string.rep, string.format, string.gsub and table.concat ask before they make any
//	a list with one far item  lists are maps from place 65536 on
//	a pattern that backtracks the length of the text to the power of the pattern's repetitions is bounded
package script
