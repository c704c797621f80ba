-- SPDX-License-Identifier: Apache-2.0
-- ==== OAuth: hashes and identifiers, in the session _state ====

-- on oauth.token_issued, oauth.token_rotated, oauth.token_revoked   guarded "a token must not be stored, only its hash"
UPDATE gate SET id = id
WHERE $token IS NULL AND $refresh_token IS NULL AND $access_token IS NULL;

-- on oauth.client_registered   guarded "this client is registered already"
INSERT INTO oauth_clients (client_id, client_name, redirect_uris, registered_at)
SELECT $client_id, $client_name, $redirect_uris, :ts WHERE :session = '_state' AND $client_id <> '';

-- on oauth.token_issued   guarded "this token hash was issued before"
INSERT INTO oauth_refresh_tokens (token_hash, chain_id, subject, client_id, issued_at, expires_at)
SELECT $token_hash, $chain_id, $subject, $client_id, :ts, annal_time($expires_at)
WHERE :session = '_state' AND $token_hash <> '';

-- on oauth.token_rotated   guarded "the token is unknown, revoked or was used before"
UPDATE oauth_refresh_tokens SET rotated_at = :ts, replaced_by = $new_token_hash
WHERE :session = '_state' AND token_hash = $token_hash AND rotated_at IS NULL
  AND revoked_at IS NULL AND $new_token_hash <> '';
INSERT INTO oauth_refresh_tokens (token_hash, chain_id, subject, client_id, issued_at, expires_at)
SELECT $new_token_hash, chain_id, subject, client_id, :ts, annal_time($expires_at)
FROM oauth_refresh_tokens
WHERE :session = '_state' AND token_hash = $token_hash AND replaced_by = $new_token_hash;

-- A token by its hash, all tokens of one sign-in by chain_id, or an access token by its jti.
-- on oauth.token_revoked   guarded "no token was given that can be revoked, or it is revoked already"
UPDATE gate SET id = id
WHERE :session = '_state'
  AND ((COALESCE($jti, '') <> '' AND NOT EXISTS (SELECT 1 FROM oauth_revoked_tokens
                                                 WHERE jti = $jti))
       OR EXISTS (SELECT 1 FROM oauth_refresh_tokens
                  WHERE (token_hash = $token_hash OR chain_id = $chain_id)
                    AND revoked_at IS NULL));
UPDATE oauth_refresh_tokens SET revoked_at = :ts
WHERE :session = '_state' AND (token_hash = $token_hash OR chain_id = $chain_id)
  AND revoked_at IS NULL;
INSERT INTO oauth_revoked_tokens (jti, revoked_at, expires_at)
SELECT $jti, :ts, annal_time($expires_at) WHERE :session = '_state' AND $jti <> ''
ON CONFLICT (jti) DO NOTHING;
