package config_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/audit"
)

// metal3CRDs are the CRDs of the Bare Metal Operator that the managers read. An infrastructure provider without
// BareMetalHosts does not need them, and a user may install the operator last.
var metal3CRDs = []string{"baremetalhosts.metal3.io", "hardwaredata.metal3.io"}

// checkStartWithoutMetal3 starts the managers on a hub without the CRDs of the Bare Metal Operator, and installs them then.
func checkStartWithoutMetal3(ctx context.Context, t *testing.T, e *env.Env) {
	g, c := NewWithT(t), e.Client()
	for _, name := range []string{env.Bootstrap, env.ControlPlane} {
		e.Manager(name).Stop()
	}
	var removed []*apiextensionsv1.CustomResourceDefinition
	for _, name := range metal3CRDs {
		removed = append(removed, removeCRD(ctx, g, c, name))
	}
	begin := time.Now()
	for _, name := range []string{env.Bootstrap, env.ControlPlane} {
		g.Expect(e.Manager(name).Start(ctx)).To(Succeed(), "%s is ready without BareMetalHosts", name)
	}

	for _, crd := range removed {
		crd.ObjectMeta = metav1.ObjectMeta{Name: crd.Name, Labels: crd.Labels, Annotations: crd.Annotations}
		g.Expect(c.Create(ctx, crd)).To(Succeed())
	}
	g.Eventually(func() (audit.Requests, error) { return e.Requests(e.Manager(env.Bootstrap).User, begin) }).
		WithContext(ctx).WithTimeout(time.Minute).
		Should(ContainElement(And(HaveField("Resource", "baremetalhosts"), HaveField("Verb", "watch"), HaveField("Code", 200))),
			"BareMetalHosts are watched once they exist")
	for _, name := range []string{env.Bootstrap, env.ControlPlane} {
		g.Expect(e.Manager(name).Died()).To(BeFalse(), name)
	}
}

// removeCRD deletes a CRD with its objects, and returns what it was.
func removeCRD(ctx context.Context, g Gomega, c client.Client, name string) *apiextensionsv1.CustomResourceDefinition {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	g.Expect(c.Get(ctx, client.ObjectKey{Name: name}, crd)).To(Succeed())
	g.Expect(c.Delete(ctx, crd)).To(Succeed())
	g.Eventually(func() error {
		return c.Get(ctx, client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{})
	}).
		WithContext(ctx).WithTimeout(time.Minute).Should(MatchError(apierrors.IsNotFound, "gone"))
	return crd
}
