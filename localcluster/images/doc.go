// Package images gives real nodes their images on a machine that may have no way to any registry.
//
// A registry on the loopback address answers for every registry there is: containerd is told, by WriteHosts, to ask it
// for every image name. It knows the images that were loaded into its folder (Store) and makes stand-ins (StandIns) for
// the few well-known names that manifests and tests use. It knows nothing else, and says so: an image that exists
// nowhere fails here as it would anywhere.
package images
