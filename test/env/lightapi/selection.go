package lightapi

import (
	"net/url"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// selection has the parameters of a list or a watch.
type selection struct {
	kind      *kind
	namespace string // empty: all
	labels    labels.Selector
	fields    fields.Selector
}

// parse parses the query of a list or a watch.
func parse(k *kind, namespace string, query url.Values) (metav1.ListOptions, selection, error) {
	options := metav1.ListOptions{}
	if err := metav1.Convert_url_Values_To_v1_ListOptions(&query, &options, nil); err != nil {
		return options, selection{}, apierrors.NewBadRequest(err.Error())
	}
	byLabels, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return options, selection{}, apierrors.NewBadRequest(err.Error())
	}
	byFields, err := fields.ParseSelector(options.FieldSelector)
	if err != nil {
		return options, selection{}, apierrors.NewBadRequest(err.Error())
	}
	return options, selection{kind: k, namespace: namespace, labels: byLabels, fields: byFields}, nil
}

// has reports whether an object, which may be nil, is selected. It supports only field selectors for names and
// for the signer of a request.
func (s selection) has(k key, object client.Object) bool {
	if object == nil || k.kind != s.kind || s.namespace != "" && s.namespace != k.Namespace ||
		!s.labels.Matches(labels.Set(object.GetLabels())) {
		return false
	}
	known := fields.Set{"metadata.name": k.Name, "metadata.namespace": k.Namespace}
	if request, ok := object.(*certificatesv1.CertificateSigningRequest); ok {
		known["spec.signerName"] = request.Spec.SignerName
	}
	return s.fields.Matches(known)
}
