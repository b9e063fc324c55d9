package bootdata

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestRedactedErrorsKeepTheirType: a refusal is recognized by its type, and its text has no credentials.
func TestRedactedErrorsKeepTheirType(t *testing.T) {
	g := NewWithT(t)
	err := withoutQuery(apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "m",
		errors.New("exceeded quota for https://img.example/iso?api_key=secret")))
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue())
	g.Expect(err.Error()).To(And(ContainSubstring("exceeded quota"), Not(ContainSubstring("api_key"))))
}
