package config_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const configTemplate = `
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: OpenshiftAssistedConfigTemplate
metadata: {namespace: default, generateName: workers-}
spec: {template: {spec: {osImageVersion: "4.19"}}}
`

// warnings records the warnings of the API server.
type warnings []string

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	*w = append(*w, text)
}

// checkTemplateWarning edits an OpenshiftAssistedConfigTemplate: the edit is accepted, with a warning.
func checkTemplateWarning(ctx context.Context, t *testing.T, config *rest.Config) {
	g := NewWithT(t)
	var seen warnings
	config = rest.CopyConfig(config)
	config.WarningHandlerWithContext = &seen
	c, err := client.New(config, client.Options{})
	g.Expect(err).NotTo(HaveOccurred())
	template := &unstructured.Unstructured{Object: object(t, configTemplate)}
	g.Expect(c.Create(ctx, template)).To(Succeed())
	edit := func(patch string) warnings {
		seen = nil
		g.Expect(c.Patch(ctx, template, mergePatch(t, object(t, patch)))).To(Succeed())
		return seen
	}
	g.Eventually(func() warnings { // the API server compiles the policy first
		return append(edit(`spec: {template: {spec: {osImageVersion: "4.20"}}}`), edit(`spec: {template: {spec: {osImageVersion: "4.19"}}}`)...)
	}, time.Minute, 200*time.Millisecond).Should(ContainElement(ContainSubstring("the change applies to new Machines only")))
	g.Expect(edit(`metadata: {annotations: {example.com/changed: "true"}}`)).To(BeEmpty(), "the spec is the same")
}
