package lint

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/seed-69ecc383/kruise/internal/convert"
)

// Manifest is an object of a file.
type Manifest struct {
	File string
	// Line is where it begins.
	Line   int
	Object *unstructured.Unstructured
	// Unreadable says why there is no object.
	Unreadable error
}

// Read returns the manifests of files and folders; "-" is in. Of a folder it reads the files whose names end in .yaml, .yml or .json, and
// with recursive also those of folders in it.
func Read(in io.Reader, names []string, recursive bool) ([]Manifest, error) {
	var out []Manifest
	for _, name := range names {
		if name == "-" {
			text, err := io.ReadAll(in)
			if err != nil {
				return nil, fmt.Errorf("reading the standard input: %w", err)
			}
			out = append(out, parse("-", text)...)
			continue
		}
		files, err := filesOf(name, recursive)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			out = append(out, parse(file, text)...)
		}
	}
	return out, nil
}

func filesOf(name string, recursive bool) ([]string, error) {
	at, err := os.Stat(name)
	if err != nil || !at.IsDir() {
		return []string{name}, err
	}
	var out []string
	err = filepath.WalkDir(name, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != name && !recursive:
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			out = append(out, path)
		}
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("folder %s holds no file that ends in .yaml, .yml or .json", name)
	}
	return out, err
}

// parse returns the manifests of a text; the items of a List are manifests of their own.
func parse(file string, text []byte) []Manifest {
	var out []Manifest
	documents := kyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	from := 0
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		at := Manifest{File: file, Line: 1}
		if i := bytes.Index(text[from:], document); i >= 0 {
			at.Line, from = bytes.Count(text[:from+i], []byte("\n"))+1, from+i+len(document)
		}
		at.Line += leading(document)
		if err != nil {
			at.Unreadable = err
			return append(out, at)
		}
		out = append(out, manifests(at, document)...)
	}
}

// leading returns how many lines of a document come before its first field.
func leading(document []byte) int {
	n := 0
	for line := range strings.Lines(string(document)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			break
		}
		n++
	}
	return n
}

func manifests(at Manifest, document []byte) []Manifest {
	encoded, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		at.Unreadable = err
		return []Manifest{at}
	}
	var fields map[string]any
	if err := utiljson.Unmarshal(encoded, &fields); err != nil {
		at.Unreadable = err
		return []Manifest{at}
	}
	if len(fields) == 0 {
		return nil
	}
	o := &unstructured.Unstructured{Object: fields}
	if o.IsList() {
		var out []Manifest
		if err := o.EachListItem(func(item runtime.Object) error {
			one := at
			one.Object, _ = item.(*unstructured.Unstructured)
			out = append(out, one)
			return nil
		}); err != nil {
			at.Unreadable = err
			return []Manifest{at}
		}
		return out
	}
	if at.Object = o; o.GetKind() == "" || o.GetAPIVersion() == "" {
		at.Unreadable = errors.New("apiVersion and kind are missing: it is no object of Kubernetes")
	}
	return []Manifest{at}
}

// files are the objects of the manifests, as a cluster in which nothing else is.
type files struct {
	scheme  *runtime.Scheme
	objects []*unstructured.Unstructured
}

var _ client.Reader = files{}

// Get implements client.Reader.
func (f files) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	gvk, err := apiutil.GVKForObject(into, f.scheme)
	if err != nil {
		return err
	}
	for _, o := range f.of(gvk) {
		if o.GetName() == key.Name && (o.GetNamespace() == key.Namespace || key.Namespace == "") {
			return decode(o.Object, into)
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, key.Name)
}

// List implements client.Reader. Field selectors are heeded by none.
func (f files) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	gvk, err := apiutil.GVKForObject(into, f.scheme)
	if err != nil {
		return err
	}
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	var o client.ListOptions
	o.ApplyOptions(options)
	items := []any{}
	for _, one := range f.of(gvk) {
		inNamespace := o.Namespace == "" || one.GetNamespace() == o.Namespace
		if inNamespace && (o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set(one.GetLabels()))) {
			items = append(items, one.Object)
		}
	}
	return decode(map[string]any{"items": items}, into)
}

func decode(fields any, into any) error {
	encoded, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return json.Unmarshal(encoded, into)
}

// of returns the objects of a kind, in the version that is asked for. What can't be converted is not there: it is refused by itself.
func (f files) of(gvk schema.GroupVersionKind) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range f.objects {
		if o.GroupVersionKind().GroupKind() != gvk.GroupKind() {
			continue
		}
		if o.GroupVersionKind() != gvk {
			converted, err := convert.Object(o, gvk.GroupVersion().String())
			if err != nil {
				continue
			}
			o = converted
		}
		out = append(out, o)
	}
	return out
}
