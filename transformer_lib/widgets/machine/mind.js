// Asking the model, one question at a time. When the answer is there, the newest question is asked,
// if it is another one.
//
//   const mind = asker({ question: () => ({ key, ...rest }), answer: async (rest) => found, onAnswer, onError });
//   await mind.ask();   mind.newest()     the answer to the present question; null while it is thought about
//   mind.found    the last answer, to whatever it was asked;   mind.isBusy

export function asker({ question, answer, onAnswer, onError }) {
  let [found, told, isBusy] = [null, null, false];
  let thinking = Promise.resolve();

  async function think() {
    isBusy = true;
    try {
      for (let asked = null; asked !== question().key; ) {
        const { key, ...rest } = question();
        asked = key;
        found = await answer(rest);
        told = key;
      }
      onAnswer(found);
    } catch (error) {
      onError(error);
    } finally {
      isBusy = false;
    }
  }

  return {
    get found() {
      return found;
    },
    get isBusy() {
      return isBusy;
    },
    newest: () => (found && told === question().key ? found : null),
    ask() {
      if (!isBusy) thinking = think();
      return thinking;
    },
  };
}
