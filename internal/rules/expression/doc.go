// Package expression computes the resources of a sidecar from those of a Pod's own containers, such as max(cpu*50%, 50m).
//
// A value is a quantity, of cores or bytes, or a plain number. There are numbers (42, .5, 1e3, 50%), quantities (100m, 1.5Gi), the variable
// cpu or memory, + - * / and parentheses, max(a, b) and min(a, b). A quantity can be multiplied with a number and divided by one; two
// quantities can be neither. A number that is added to a quantity or compared with one counts cores or bytes, and so does one that is the
// result.
//
// Whatever is wrong with an expression shows when it is read: only that its result is negative depends on the variable.
package expression
