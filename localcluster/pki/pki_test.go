package pki

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestCertificatesAreTrustedForWhatTheyAreMadeFor(t *testing.T) {
	folder := Folder(filepath.Join(t.TempDir(), "pki"))
	for _, name := range []string{"ca", "other-ca"} {
		if err := folder.Authority(name); err != nil {
			t.Fatal(err)
		}
	}
	for _, request := range []Request{
		{Name: "server", CommonName: "server", Hosts: []string{"localhost", "127.0.0.1"}},
		{Name: "client", CommonName: "jane", Organizations: []string{"admins"}},
	} {
		if err := folder.Issue("ca", request); err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		authority, cert, host string
		usage                 x509.ExtKeyUsage
		trusted               bool
	}{
		"a server by its name":             {"ca", "server", "localhost", x509.ExtKeyUsageServerAuth, true},
		"a server by its address":          {"ca", "server", "127.0.0.1", x509.ExtKeyUsageServerAuth, true},
		"no server by another name":        {"ca", "server", "example.com", x509.ExtKeyUsageServerAuth, false},
		"a client":                         {"ca", "client", "", x509.ExtKeyUsageClientAuth, true},
		"no client as a server":            {"ca", "client", "", x509.ExtKeyUsageServerAuth, false},
		"nobody of one authority by other": {"other-ca", "client", "", x509.ExtKeyUsageClientAuth, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			authority, err := folder.load(tc.authority)
			if err != nil {
				t.Fatal(err)
			}
			pair, err := tls.LoadX509KeyPair(folder.Cert(tc.cert), folder.Key(tc.cert))
			if err != nil {
				t.Fatal(err)
			}
			roots := x509.NewCertPool()
			roots.AddCert(authority.cert)
			_, err = pair.Leaf.Verify(x509.VerifyOptions{
				Roots: roots, DNSName: tc.host, KeyUsages: []x509.ExtKeyUsage{tc.usage}, CurrentTime: time.Now(),
			})
			if (err == nil) != tc.trusted {
				t.Errorf("got %v, want trusted %t", err, tc.trusted)
			}
		})
	}
}

func TestWhatIsThereIsKept(t *testing.T) {
	folder := Folder(t.TempDir())
	read := func() [4]string {
		var contents [4]string
		for i, path := range []string{folder.Cert("ca"), folder.Cert("a"), folder.Key("a"), folder.Key("tokens")} {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			contents[i] = string(content)
		}
		return contents
	}
	make := func() {
		t.Helper()
		if err := folder.Authority("ca"); err != nil {
			t.Fatal(err)
		}
		if err := folder.Issue("ca", Request{Name: "a", CommonName: "a"}); err != nil {
			t.Fatal(err)
		}
		if err := folder.SigningKey("tokens"); err != nil {
			t.Fatal(err)
		}
	}
	make()
	before := read()
	make()
	if after := read(); before != after {
		t.Error("a second call made other certificates")
	}
	info, err := os.Stat(folder.Key("a"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("the key's mode is %o, want 600", mode)
	}
}
