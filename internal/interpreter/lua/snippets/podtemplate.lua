local function podTemplate(manifest)
  for _, path in ipairs(templates) do
    local ok, found = pcall(lookup, manifest, path)
    if ok and found ~= nil then
      return found
    end
  end
  return nil
end
