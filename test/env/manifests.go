package env

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/cluster-api/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	fieldOwner = "test-env"
	// applyParallel is the number of objects that are applied in parallel; more are no faster on two cores.
	applyParallel = 4
	// settleTimeout and settleInterval are for operations that an API server completes within two seconds.
	settleTimeout  = 3 * time.Minute
	settleInterval = 50 * time.Millisecond
)

const crdKind = "CustomResourceDefinition"

// variable matches the shell parameter expansions that clusterctl supports in components: ${NAME},
// ${NAME:=default}.
var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)(?::?[=-]([^}]*))?\}`)

// substitute replaces variables as clusterctl does: with the given value, the default, or the empty string.
func substitute(manifests []byte, values map[string]string) []byte {
	return variable.ReplaceAllFunc(manifests, func(match []byte) []byte {
		parts := variable.FindSubmatch(match)
		if value, ok := values[string(parts[1])]; ok {
			return []byte(value)
		}
		return parts[2]
	})
}

// decode parses a stream of YAML documents.
func decode(manifests []byte) ([]*unstructured.Unstructured, error) {
	decoded, err := yaml.ToUnstructured(manifests)
	if err != nil {
		return nil, fmt.Errorf("cannot read manifests: %w", err)
	}
	objects := make([]*unstructured.Unstructured, 0, len(decoded))
	for i := range decoded {
		objects = append(objects, &decoded[i])
	}
	return objects, nil
}

// webhookServer is the webhook server of a manager, which has no Service outside of a cluster.
type webhookServer struct {
	url      string
	caBundle []byte
}

// redirect makes the API server call the webhook server directly, in webhook configurations and in the
// conversion of CRDs.
func (w *webhookServer) redirect(object *unstructured.Unstructured) error {
	switch object.GetKind() {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
		if err != nil {
			return fmt.Errorf("cannot read the webhooks of %s: %w", object.GetName(), err)
		}
		for _, webhook := range webhooks {
			config, _, err := unstructured.NestedMap(webhook.(map[string]any), "clientConfig")
			if err != nil {
				return fmt.Errorf("cannot read a webhook of %s: %w", object.GetName(), err)
			}
			webhook.(map[string]any)["clientConfig"] = w.clientConfig(config)
		}
		return unstructured.SetNestedSlice(object.Object, webhooks, "webhooks")
	case crdKind:
		config, found, err := unstructured.NestedMap(object.Object, "spec", "conversion", "webhook", "clientConfig")
		if err != nil || !found {
			return err
		}
		return unstructured.SetNestedMap(object.Object, w.clientConfig(config), "spec", "conversion", "webhook", "clientConfig")
	}
	return nil
}

func (w *webhookServer) clientConfig(service map[string]any) map[string]any {
	path, _, _ := unstructured.NestedString(service, "service", "path")
	return map[string]any{"url": w.url + path, "caBundle": base64.StdEncoding.EncodeToString(w.caBundle)}
}

// withoutConversion removes the conversion of CRDs whose controller does not run, so that only the stored
// version works.
func withoutConversion(objects []*unstructured.Unstructured) {
	for _, object := range objects {
		unstructured.RemoveNestedField(object.Object, "spec", "conversion")
	}
}

// onlyStored removes the versions of a CRD that are not stored. The API server keeps a cache of each version.
// After each change of an object, the webhook converts the object to all versions. This costs more than the
// change itself, and few clients use other versions. An installation with clusterctl has all versions.
func onlyStored(crd *unstructured.Unstructured) error {
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if err != nil {
		return fmt.Errorf("cannot read the versions of %s: %w", crd.GetName(), err)
	}
	versions = slices.DeleteFunc(versions, func(version any) bool { return version.(map[string]any)["storage"] != true })
	return unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
}

// install applies objects, CRDs and namespaces first, and waits until the API server serves the CRDs.
func install(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	isFirst := func(object *unstructured.Unstructured) bool {
		return object.GetKind() == crdKind || object.GetKind() == "Namespace"
	}
	first := slices.DeleteFunc(slices.Clone(objects), func(o *unstructured.Unstructured) bool { return !isFirst(o) })
	rest := slices.DeleteFunc(slices.Clone(objects), isFirst)
	if err := apply(ctx, c, first); err != nil {
		return err
	}
	for _, object := range first {
		if object.GetKind() != crdKind {
			continue
		}
		if err := established(ctx, c, object.GetName()); err != nil {
			return err
		}
	}
	return apply(ctx, c, rest)
}

func apply(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(applyParallel)
	for _, object := range objects {
		group.Go(func() error {
			err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldOwner), client.ForceOwnership)
			if err != nil {
				return fmt.Errorf("cannot apply %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
			}
			return nil
		})
	}
	return group.Wait()
}

// established waits until the API server serves a CRD.
func established(ctx context.Context, c client.Client, name string) error {
	err := wait.PollUntilContextTimeout(ctx, settleInterval, settleTimeout, true, func(ctx context.Context) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, client.ObjectKey{Name: name}, crd); err != nil {
			return false, err
		}
		return slices.ContainsFunc(crd.Status.Conditions, func(condition apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue
		}), nil
	})
	if err != nil {
		return fmt.Errorf("CRD %s is not served: %w", name, err)
	}
	return nil
}
