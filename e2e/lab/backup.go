// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Backup is all that a cluster's API server has stored at one time.
type Backup struct {
	prefix string
	stored []Stored
}

// Stored is one of etcd's keys with its value; both travel in base64 (etcd's JSON gateway,
// https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/).
type Stored struct {
	Key   []byte `json:"key"`
	Value []byte `json:"value"`
}

// Backup reads what a cluster's API server has stored.
func (f *Fleet) Backup(ctx context.Context, cluster string) (*Backup, error) {
	b := &Backup{prefix: "/" + cluster + "/"}
	var err error
	if b.stored, err = f.stored(ctx, b.prefix); err != nil {
		return nil, fmt.Errorf("back up %s: %w", cluster, err)
	}
	return b, nil
}

func (f *Fleet) stored(ctx context.Context, prefix string) ([]Stored, error) {
	var found struct {
		KVs []Stored `json:"kvs"`
	}
	err := f.etcd(ctx, "range", keysUnder(prefix), &found)
	return found.KVs, err
}

// Restore replaces what a cluster's API server has stored by a backup. The API server must not run.
func (f *Fleet) Restore(ctx context.Context, b *Backup) error {
	if err := f.etcd(ctx, "deleterange", keysUnder(b.prefix), nil); err != nil {
		return fmt.Errorf("restore %s: %w", b.prefix, err)
	}
	for _, s := range b.stored {
		if err := f.etcd(ctx, "put", s, nil); err != nil {
			return fmt.Errorf("restore %s: %w", b.prefix, err)
		}
	}
	return nil
}

// keysUnder are all that begin with the prefix.
func keysUnder(prefix string) any {
	end := []byte(prefix)
	end[len(end)-1]++
	return map[string][]byte{"key": []byte(prefix), "range_end": end}
}

func (f *Fleet) etcd(ctx context.Context, call string, body, answer any) error {
	port, err := f.state.port("etcd")
	if err != nil {
		return err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, httpURL(port, "/v3/kv/"+call), bytes.NewReader(raw))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("etcd %s: %s: %s", call, resp.Status, text)
	}
	if answer == nil {
		_, err = io.Copy(io.Discard, resp.Body) // or the connection is of no more use
		return err
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}
