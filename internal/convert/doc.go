// Package convert turns objects of one API version into another. Nothing that a user or a controller wrote may be lost on the way there and
// back: what the older version has no field for travels in its annotations and labels.
//
// The typed functions (CloneSetToHub, CloneSetFromHub) hold the rules. Handler serves them to the API server; it leaves templates as they
// came, so that fields which this build does not know survive, and so that no template can make a list of objects fail.
package convert
