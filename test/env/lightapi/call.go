package lightapi

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"reflect"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/uuid"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/names"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// call is a request about an object or a kind.
type call struct {
	*Server

	request *http.Request
	info    *request.RequestInfo
	view    view
	user    string
	key     key
}

// answer executes the request.
func (c *call) answer() (runtime.Object, int, error) {
	var object runtime.Object
	var err error
	switch c.info.Verb {
	case "get":
		object, err = c.store.get(c.key)
	case "list":
		object, err = c.list()
	case "create":
		if c.info.Subresource == tokenSubresource {
			object, err = c.issue()
		} else {
			object, err = c.create()
		}
		return object, http.StatusCreated, err
	case "update":
		object, err = c.change(func(client.Object) (client.Object, error) { return decode(c, c.key.kind.empty()) })
	case "patch":
		object, err = c.change(c.patched)
	case "delete":
		object, err = c.remove()
	default:
		err = apierrors.NewMethodNotSupported(c.key.kind.resource().GroupResource(), c.info.Verb)
	}
	return object, http.StatusOK, err
}

func (c *call) list() (runtime.Object, error) {
	_, selected, err := parse(c.key.kind, c.key.Namespace, c.request.URL.Query())
	if err != nil {
		return nil, err
	}
	found, version := c.store.list(selected)
	return c.view.list(c.key.kind, found, version)
}

// empty returns an empty object of the kind.
func (k *kind) empty() client.Object {
	made, err := scheme.New(k.GroupVersionKind)
	if err != nil {
		panic(err) // the scheme contains all kinds
	}
	made.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
	return made.(client.Object) //nolint:forcetypeassert // all kinds have metadata
}

// decode decodes the body of a request, in any encoding.
func decode[T runtime.Object](c *call, into T) (T, error) {
	body, err := io.ReadAll(c.request.Body)
	if err == nil && len(body) > 0 {
		gvk := into.GetObjectKind().GroupVersionKind()
		_, _, err = codecs.UniversalDeserializer().Decode(body, &gvk, into)
		into.GetObjectKind().SetGroupVersionKind(gvk)
	}
	if err != nil {
		return into, apierrors.NewBadRequest(err.Error())
	}
	return into, nil
}

func (c *call) create() (runtime.Object, error) {
	object, err := decode(c, c.key.kind.empty())
	if err != nil {
		return nil, err
	}
	if object.GetName() == "" && object.GetGenerateName() != "" {
		object.SetName(names.SimpleNameGenerator.GenerateName(object.GetGenerateName()))
	}
	if c.key.Name = object.GetName(); c.key.Name == "" {
		return nil, apierrors.NewBadRequest("name or generateName is required")
	}
	object.SetNamespace(c.key.Namespace)
	object.SetUID(types.UID(uuid.NewString()))
	object.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	if c.key.kind.status {
		statusOf(object).SetZero()
	}
	if csr, ok := object.(*certificatesv1.CertificateSigningRequest); ok {
		csr.Spec.Username, csr.Spec.Groups = c.user, c.request.Header.Values(authenticationv1.ImpersonateGroupHeader)
	}
	return c.store.write(c.key, func(current client.Object) (client.Object, error) {
		if current != nil {
			return nil, apierrors.NewAlreadyExists(c.key.kind.resource().GroupResource(), c.key.Name)
		}
		return object, nil
	})
}

// change replaces an object with the result of act, except fields that the request may not change. An equal
// object is no change.
func (c *call) change(act func(current client.Object) (client.Object, error)) (runtime.Object, error) {
	return c.store.write(c.key, func(current client.Object) (client.Object, error) {
		if current == nil {
			return nil, apierrors.NewNotFound(c.key.kind.resource().GroupResource(), c.key.Name)
		}
		wanted, err := act(current)
		if err == nil {
			err = conflict(c.key, current, wanted)
		}
		if err != nil {
			return nil, err
		}
		wanted = c.allowed(current, wanted)
		if equality.Semantic.DeepEqual(current, wanted) {
			return current, nil
		}
		return wanted, nil
	})
}

// allowed returns the object with the allowed changes of wanted: only the status, or all other fields.
func (c *call) allowed(current, wanted client.Object) client.Object {
	if c.info.Subresource != "" {
		changed := current.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy is of the same type
		statusOf(changed).Set(statusOf(wanted))
		return changed
	}
	if c.key.kind.status {
		statusOf(wanted).Set(statusOf(current))
	}
	wanted.SetName(c.key.Name)
	wanted.SetNamespace(c.key.Namespace)
	wanted.SetUID(current.GetUID())
	wanted.SetCreationTimestamp(current.GetCreationTimestamp())
	wanted.SetResourceVersion(current.GetResourceVersion())
	return wanted
}

func statusOf(object client.Object) reflect.Value {
	return reflect.ValueOf(object).Elem().FieldByName("Status")
}

// patched returns an object with the patch of the request.
func (c *call) patched(current client.Object) (client.Object, error) {
	patch, err := io.ReadAll(c.request.Body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	before, err := json.Marshal(current)
	if err != nil {
		return nil, err
	}
	wanted := c.key.kind.empty()
	contentType, _, _ := mime.ParseMediaType(c.request.Header.Get("Content-Type"))
	var after []byte
	switch types.PatchType(contentType) {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, patch)
	case types.StrategicMergePatchType:
		after, err = strategicpatch.StrategicMergePatch(before, patch, wanted)
	case types.JSONPatchType:
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(patch); err == nil {
			after, err = operations.Apply(before)
		}
	default:
		return nil, apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "patch",
			c.key.kind.resource().GroupResource(), c.key.Name, contentType, 0, true)
	}
	if err == nil {
		err = json.Unmarshal(after, wanted)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return wanted, nil
}

func (c *call) remove() (runtime.Object, error) {
	options, err := decode(c, &metav1.DeleteOptions{TypeMeta: metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "v1"}})
	if err != nil {
		return nil, err
	}
	_, err = c.store.write(c.key, func(current client.Object) (client.Object, error) {
		resource := c.key.kind.resource().GroupResource()
		if current == nil {
			return nil, apierrors.NewNotFound(resource, c.key.Name)
		}
		wanted := ptr.Deref(options.Preconditions, metav1.Preconditions{})
		if ptr.Deref(wanted.UID, current.GetUID()) != current.GetUID() || ptr.Deref(wanted.ResourceVersion,
			current.GetResourceVersion()) != current.GetResourceVersion() {
			return nil, apierrors.NewConflict(resource, c.key.Name, errModified)
		}
		return nil, nil //nolint:nilnil // no response object
	})
	return &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, err
}

// issue creates a token of a ServiceAccount.
func (c *call) issue() (runtime.Object, error) {
	if _, err := c.store.get(c.key); err != nil {
		return nil, err
	}
	request, err := decode(c, &authenticationv1.TokenRequest{TypeMeta: metav1.TypeMeta{
		Kind:       "TokenRequest",
		APIVersion: authenticationv1.SchemeGroupVersion.String(),
	}})
	if err != nil {
		return nil, err
	}
	token := issued{user: "system:serviceaccount:" + c.key.Namespace + ":" + c.key.Name}
	if bound := request.Spec.BoundObjectRef; bound != nil {
		secrets := kinds[corev1.SchemeGroupVersion.WithResource("secrets")]
		token.bound, token.uid = key{secrets, types.NamespacedName{Namespace: c.key.Namespace, Name: bound.Name}}, bound.UID
		if found, err := c.store.get(token.bound); err != nil || found.GetUID() != bound.UID {
			return nil, apierrors.NewConflict(secrets.resource().GroupResource(), bound.Name, errModified)
		}
	}
	lasts := time.Duration(ptr.Deref(request.Spec.ExpirationSeconds, 3600)) * time.Second
	request.Status = authenticationv1.TokenRequestStatus{Token: uuid.NewString(), ExpirationTimestamp: metav1.NewTime(time.Now().Add(lasts))}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens[request.Status.Token] = token
	return request, nil
}
