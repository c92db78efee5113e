// Package scene is where tests of the whole product play: clusters, shared by the tests of a package or one test's own, with Kruise in them, and
// in a shared one a namespace for each test, with the ways to wait for what has to happen there.
//
//	var shared = &scene.Site{Name: "web", Options: cluster.Options{Nodes: 5}}
//
//	func TestMain(m *testing.M) { scene.Main(m, shared) }
//
//	func TestPodsComeBack(t *testing.T) {
//		t.Parallel()
//		e := shared.Enter(t)
//		e.Make("…")
//		e.Eventually("all Pods are ready", func() error { … })
//	}
package scene
