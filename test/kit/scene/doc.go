// Package scene brings up the clusters that tests of the whole product run in: a Site is shared by the tests of a package, each of which
// has a namespace of its own there, a Stage is a cluster of one test. Test has the ways to wait.
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
