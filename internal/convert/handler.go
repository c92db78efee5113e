package convert

import (
	"encoding/json"
	"fmt"
	"net/http"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Path is where Handler is to be served: CRDs name it as their conversion webhook.
const Path = "/convert"

// Handler answers the API server's requests to convert objects.
func Handler() http.Handler { return http.HandlerFunc(serve) }

func serve(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, fmt.Sprintf("reading the conversion review: %v", err), http.StatusBadRequest)
		return
	}
	if review.Request == nil {
		http.Error(w, "the conversion review holds no request", http.StatusBadRequest)
		return
	}
	review.Response = respond(review.Request)
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	// The status line is out with the first byte: a broken connection can't be reported to anyone.
	_ = json.NewEncoder(w).Encode(&review)
}

// respond converts all objects of a request or, as the API server wants it, none.
func respond(request *apiextensionsv1.ConversionRequest) *apiextensionsv1.ConversionResponse {
	objects, err := Objects(request.Objects, request.DesiredAPIVersion)
	if err != nil {
		return &apiextensionsv1.ConversionResponse{
			UID:    request.UID,
			Result: metav1.Status{Status: metav1.StatusFailure, Message: err.Error()},
		}
	}
	return &apiextensionsv1.ConversionResponse{
		UID:              request.UID,
		ConvertedObjects: objects,
		Result:           metav1.Status{Status: metav1.StatusSuccess},
	}
}

// Objects converts raw objects. It returns an error, and never panics, whatever it is given.
func Objects(raw []runtime.RawExtension, apiVersion string) (out []runtime.RawExtension, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("converting to %s: %v", apiVersion, cause)
		}
	}()
	for i := range raw {
		src := &unstructured.Unstructured{}
		if err := src.UnmarshalJSON(raw[i].Raw); err != nil {
			return nil, fmt.Errorf("reading object %d of the request: %w", i, err)
		}
		dst, err := Object(src, apiVersion)
		if err != nil {
			return nil, err
		}
		out = append(out, runtime.RawExtension{Object: dst})
	}
	return out, nil
}
