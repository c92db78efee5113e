package protection

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is how many objects are read at a time: the first page nearly always decides.
const pageSize = 100

// pages reads a list live, page by page, until look returns false or there is no more.
func (o Options) pages(ctx context.Context, list client.ObjectList, look func(client.ObjectList) bool, options ...client.ListOption) error {
	next := ""
	for {
		// A list without a page to go on from is as new as the request.
		if err := o.Live.List(ctx, list, append(options, client.Limit(pageSize), client.Continue(next))...); err != nil {
			return err
		}
		accessor, err := meta.ListAccessor(list)
		if err != nil {
			return err
		}
		if next = accessor.GetContinue(); !look(list) || next == "" {
			return nil
		}
		empty(list)
	}
}

// empty removes what a page has left in a list.
func empty(list client.ObjectList) {
	list.SetContinue("")
	list.SetRemainingItemCount(nil)
	list.SetResourceVersion("")
}

// count returns how many objects of a list are not on their way out: exactly, or those of the first page that has one and those that the
// API server says are left.
func (o Options) count(ctx context.Context, list *metav1.PartialObjectMetadataList, options ...client.ListOption) (n int, err error) {
	err = o.pages(ctx, list, func(client.ObjectList) bool {
		for i := range list.Items {
			if list.Items[i].DeletionTimestamp == nil {
				n++
			}
		}
		if left := list.GetRemainingItemCount(); n > 0 && left != nil {
			n += int(*left)
		}
		return n == 0
	}, options...)
	return n, err
}
